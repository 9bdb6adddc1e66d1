import type { Core } from '@strapi/strapi';
import type { ManagedWebhook } from '../../../../shared/contracts/webhooks';
import { getModules, moduleName } from '../../modules';
import { judgeFilter } from '../rules/data-filter';
import { judgeKept, keptNames } from '../rules/own-headers';
import type { FieldRules } from '../../http/validation';
import { declaredEvents, moduleOff } from '../subscriptions/catalogue';
import type { CreateWebhook, UpdateWebhook } from './inputs';
import { getSender } from '../delivering/running';
import { refusal } from '../../runtime/refusal';

/**
 * What the schema cannot say of a webhook's address, events, filter and headers. Names and an address that the webhook
 * has already stay allowed: the plugin that declared an event may be away, its module off for a
 * while, and a name may not resolve today.
 * @param before the webhook that is being changed; none where one is made.
 */
export const webhookRules = (
  strapi: Core.Strapi,
  before?: Pick<ManagedWebhook, 'url' | 'events' | 'header_names'>
): Pick<FieldRules<CreateWebhook>, 'url' | 'events' | 'filter' | 'headers'> => ({
  filter: async (filter) => judgeFilter(filter),

  headers: async (headers) => judgeKept(headers, before?.header_names ?? []),

  /** A name that does not resolve yet is accepted: the receiver may not be up. */
  async url(url) {
    if (url === before?.url) return null;
    const judged = await getSender(strapi).guard.checkUrl(url);
    const isWrong = judged.verdict === 'invalid' || judged.verdict === 'refused';
    return isWrong ? refusal(judged.reason, judged.code) : null;
  },

  async events(names) {
    const fresh = names.filter((name) => name !== '*' && !before?.events.includes(name));
    if (fresh.length === 0) return null;
    const declared = await declaredEvents(strapi);
    const enabled = await getModules(strapi).enabled();
    const unknown = fresh.filter((name) => !Object.hasOwn(declared, name));
    const off = fresh.flatMap((name) => {
      const module = moduleOff(declared, name, enabled);
      return module ? [{ name, module }] : [];
    });
    const ofModules = off.map(
      ({ name, module }) => `${name} belongs to the module ${moduleName(module)}`
    );
    const wrong = [
      ...(unknown.length > 0 ? [`unknown event ${unknown.join(', ')}`] : []),
      ...(off.length > 0 ? [`${ofModules.join(', ')}, which is switched off`] : []),
    ].join('; ');
    if (unknown.length > 0) {
      return refusal(wrong, 'events_unknown', { events: unknown.join(', ') });
    }
    if (off.length === 0) return null;
    return refusal(wrong, 'events_off', { events: off.map(({ name }) => name).join(', ') });
  },
});

const originOf = (url: string): string | null => (URL.canParse(url) ? new URL(url).origin : null);

/**
 * Whether a change would have headers sent to another host whose values it does not give: that is a way
 * of reading them, and so for who may reveal secrets.
 */
export const movesHeaders = (
  before: Pick<ManagedWebhook, 'url' | 'header_names'>,
  { url, headers }: Pick<UpdateWebhook, 'url' | 'headers'>
): boolean => {
  if (url === undefined || originOf(url) === originOf(before.url)) return false;
  const kept = headers === undefined ? before.header_names : keptNames(headers ?? {});
  return kept.length > 0;
};
