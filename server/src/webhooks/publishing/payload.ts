import type { Core } from '@strapi/strapi';
import type { Webhook } from '../../../../shared/contracts/webhooks';
import { getHook, type ToldEvent } from '../../hooks';
import { matches } from '../rules/data-filter';
import { jsonOf } from '../rules/event-data';
import { thinEvent } from '../rules/thin';

/** What a webhook is sent that wants ids only; docs/management-api.md#thin-payloads. */
export const thinText = (event: string, text: string): string =>
  JSON.stringify(thinEvent(event, JSON.parse(text)));

/**
 * What handlers make of an event's data for a webhook; null where they skip it. Each webhook gets a copy
 * of its own, so that a handler's change reaches no other webhook.
 * @throws TypeError where what they return is no object in JSON
 */
export const filteredText = async (
  strapi: Core.Strapi,
  { event, text }: ToldEvent,
  webhook: Webhook
): Promise<string | null> => {
  const value = await getHook(strapi, 'service_crm_webhook_payload').call({
    payload: JSON.parse(text) as unknown,
    event,
    webhook: structuredClone(webhook),
  });
  // A handler may skip the webhook by returning null for the whole value or for the payload.
  return value === null || value.payload === null ? null : jsonOf(value.payload);
};

/**
 * The data that one webhook is sent of an event, as text; null where its filter or a handler skips it.
 * @throws where that cannot be told
 */
export const textFor = async (
  strapi: Core.Strapi,
  told: ToldEvent,
  webhook: Webhook
): Promise<string | null> => {
  if (webhook.filter !== null && !matches(webhook.filter, JSON.parse(told.text))) return null;
  const hasHandlers = getHook(strapi, 'service_crm_webhook_payload').getHandlers().length > 0;
  const text = hasHandlers ? await filteredText(strapi, told, webhook) : told.text;
  return text !== null && webhook.payload === 'thin' ? thinText(told.event, text) : text;
};
