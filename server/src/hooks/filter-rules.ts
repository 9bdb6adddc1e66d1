import type { FilterRules } from '.';
import type { PayloadFilterValue, RequestFilterValue } from './types';
import { isRecord } from '../runtime/text';

const shown = (value: unknown): string => {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  return Array.isArray(value) ? 'a list' : `a ${typeof value}`;
};

const left = (what: string): Error => new Error(`${what}; it was left out`);

/** As it will be sent: a copy by way of JSON. */
const copyOf = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

/** `service_crm_webhook_payload`: null skips the webhook. Each handler gets a copy, so a failed one changes nothing. */
export const payloadRules: FilterRules<PayloadFilterValue | null> = {
  prepare: (current) =>
    current && {
      payload: copyOf(current.payload),
      event: current.event,
      webhook: structuredClone(current.webhook),
    },
  accept(returned, handed) {
    if (returned === null || handed === null) return null;
    if (!isRecord(returned)) throw left(`it returned ${shown(returned)} instead of the value`);
    const { payload } = returned;
    if (payload === null) return null;
    if (!isRecord(payload)) throw left(`it returned ${shown(payload)} as payload`);
    const text = JSON.stringify(payload) as string | undefined;
    if (!text?.startsWith('{')) throw left('its payload is not a JSON object');
    return { payload, event: handed.event, webhook: handed.webhook };
  },
};

/** `service_crm_webhook_request_args`: the value, with an address and headers. */
export const requestRules: FilterRules<RequestFilterValue> = {
  prepare: ({ args, event, webhook }) => ({
    args: { ...args, headers: { ...args.headers } },
    event,
    webhook: structuredClone(webhook),
  }),
  accept(returned, handed) {
    const value = returned === undefined ? handed : returned;
    if (!isRecord(value)) throw left(`it returned ${shown(returned)} instead of the value`);
    const { args } = value;
    if (!isRecord(args)) throw left(`it returned ${shown(args)} as args`);
    if (typeof args.url !== 'string') throw left(`it returned ${shown(args.url)} as url`);
    if (!isRecord(args.headers)) throw left(`it returned ${shown(args.headers)} as headers`);
    // Serialised here, so that an error is the handler's: not every value has a text.
    const written = Object.entries(args.headers).map(([name, one]) => [name, one && String(one)]);
    return { ...handed, args: { ...args, url: args.url, headers: Object.fromEntries(written) } };
  },
};

export const eventsRules: FilterRules<Record<string, unknown>> = {
  prepare: (current) => ({ ...current }),
  accept(returned, handed) {
    if (returned === undefined) return handed;
    if (!isRecord(returned)) throw left(`it returned ${shown(returned)} instead of the map`);
    return returned;
  },
};

export const daysRules: FilterRules<number> = {
  prepare: (current) => current,
  accept(returned, handed) {
    if (returned === undefined) return handed;
    if (typeof returned === 'number' && Number.isFinite(returned) && returned > 0) return returned;
    throw left('it returned no number above 0');
  },
};
