import type { Core } from '@strapi/strapi';
import type { ManagedWebhook } from '../../../../shared/contracts/webhooks';
import { getModules, moduleName } from '../../modules';
import { fieldError, type FieldRules } from '../../http/validation';
import { judgeFilter, storedFilter } from '../rules/data-filter';
import { judgeKept, keptNames } from '../rules/own-headers';
import { headerNames } from '../own-headers';
import type { WebhookRow } from '../tables';
import { declaredEvents, moduleOff } from '../catalogue';
import type { CreateWebhook, UpdateWebhook } from './inputs';
import { getSender } from '../lifecycle';
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

  /**
   * A name that does not resolve yet is accepted: the receiver may not be up. Never within a transaction: a
   * resolver may take seconds to answer, and SQLite has one connection.
   */
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

const HEADERS_MOVED = refusal(
  'must be given anew with another address, by whoever may not reveal secrets',
  'headers_moved'
);

const addressOf = (url: string): string => (URL.canParse(url) ? new URL(url).href : url);

/**
 * Whether a change would have headers sent to another address whose values it does not give: that is a way
 * of reading them, and so for who may reveal secrets. Another path of one host may be somebody else's, too.
 */
const movesHeaders = (
  before: Pick<WebhookRow, 'url' | 'headers'>,
  { url, headers }: Pick<UpdateWebhook, 'url' | 'headers'>
): boolean => {
  if (url === undefined || addressOf(url) === addressOf(before.url)) return false;
  const kept = headers === undefined ? headerNames(before) : keptNames(headers ?? {});
  return kept.length > 0;
};

/**
 * Judges a change by the webhook as it is in the transaction that writes it: what was read before may
 * have been changed since.
 * @param mayMoveHeaders whether who asks may reveal secrets
 * @throws ValidationError (400) where it moves headers that are not given, keeps ones that there are not,
 * or switches on what has a filter that may not be used
 */
export const judgeChange = (
  before: WebhookRow,
  change: Pick<UpdateWebhook, 'url' | 'headers' | 'active' | 'filter'>,
  mayMoveHeaders: boolean
): void => {
  const unknown = judgeKept(change.headers ?? {}, headerNames(before));
  if (unknown) throw fieldError('headers', unknown);
  if (!mayMoveHeaders && movesHeaders(before, change)) throw fieldError('headers', HEADERS_MOVED);
  if (!change.active || before.active || change.filter !== undefined) return;
  const filter = storedFilter(before.filter);
  const unfit = filter && judgeFilter(filter);
  if (unfit) throw fieldError('filter', unfit);
};
