import { setTimeout as sleep } from 'node:timers/promises';
import type { Knex } from 'knex';
import type {
  Health,
  ListedWebhook,
  ManagedWebhook,
  Page,
  WebhookSummary,
  WebhookWithSecret,
} from '../../../../shared/contracts/webhooks';
import { whereContains } from '../../database/contains';
import { firstOrNotFound } from '../../database/retry';
import { documentsOf } from '../../database/tables/internal-types';
import { readPage } from '../../http/pagination';
import { definedOf, fieldError, type FieldRules } from '../../http/validation';
import { moduleName } from '../../modules/modules';
import { urlOf } from '../../net/address';
import { nextTurn } from '../../runtime/event-loop';
import { HOUR_MS, isoTime } from '../../runtime/text';
import { refusal, Refused } from '../../runtime/refusal';
import { seal, unseal } from '../../secrets/secret-box';
import { declaredEvents, moduleOff } from '../catalogue';
import { removeDeliveriesOf } from '../deliveries/log';
import { getDeliveryChanges } from '../deliveries/changes';
import { announceDeliveries, getDeliveryStore } from '../deliveries/store';
import { readHealthOf, readLastAnswer } from '../figures/health';
import { stateOf } from '../rules/delivery-state';
import { removeRollupsOf } from '../figures/rollups';
import { getSender } from '../lifecycle';
import { judgeFilter, storedFilter } from '../rules/data-filter';
import { generateSecret, judgeKept, keptNames } from '../rules/request-headers';
import { settleArrivedWebhooks } from '../imported-webhooks';
import { awaitOtherNodes } from '../nodes';
import { WEBHOOK, type WebhookRow, WEBHOOKS_TABLE } from '../tables';
import { headerNames, openHeaders, sealHeaders, toManaged } from '../webhook';
import type { CreateWebhook, RotateSecret, UpdateWebhook, WebhooksQuery } from './inputs';
import type { App } from '../../app';
import type { Db } from '../../database/db';

const AT_ONCE = 500;
const LOOK_AGAIN_MS = 100;
/** The longest that is waited for an attempt beyond its deadline. */
const UNDER_WAY_MARGIN_MS = 20_000;

/** Discards an inactive webhook's pending deliveries, in batches; attempts under way end first, to be in the log. */
const discardWaiting = async (app: App, webhook: number): Promise<void> => {
  const changes = getDeliveryChanges(app);
  const until = performance.now() + app.options.webhooks.timeoutMs + UNDER_WAY_MARGIN_MS;
  for (;;) {
    const force = performance.now() > until;
    const { ended, isLeft } = await changes.discard(webhook, AT_ONCE, force);
    if (!isLeft) return;
    await (ended > 0 ? nextTurn() : sleep(LOOK_AGAIN_MS));
  }
};

/**
 * Rules beyond the schema. The webhook's current names and address stay valid: a plugin or module may be off for a
 * while, and a name may not resolve today. `before`: the webhook to change, absent for a new one.
 */
export const webhookRules = (
  app: App,
  before?: Pick<ManagedWebhook, 'url' | 'events' | 'header_names'>
): Pick<FieldRules<CreateWebhook>, 'url' | 'events' | 'filter' | 'headers'> => ({
  filter: async (filter) => judgeFilter(filter),

  headers: async (headers) => judgeKept(headers, before?.header_names ?? []),

  /** Accepts an unresolvable name: the receiver may not be up. Not in a transaction: resolving takes seconds. */
  async url(url) {
    if (url === before?.url) return null;
    const judged = await getSender(app).guard.checkUrl(url);
    const isWrong = judged.verdict === 'invalid' || judged.verdict === 'refused';
    return isWrong ? refusal(judged.reason, judged.code) : null;
  },

  async events(names) {
    const fresh = names.filter((name) => name !== '*' && !before?.events.includes(name));
    if (fresh.length === 0) return null;
    const declared = await declaredEvents(app);
    const enabled = await app.modules.enabled();
    const unknown = fresh.filter((name) => !Object.hasOwn(declared, name));
    const off = fresh.flatMap((name) => {
      const module = moduleOff(declared, name, enabled);
      return module ? [{ name, owned: `${name} belongs to the module ${moduleName(module)}` }] : [];
    });
    const owned = off.map((one) => one.owned).join(', ');
    const wrong: string[] = [];
    if (unknown.length > 0) wrong.push(`unknown event ${unknown.join(', ')}`);
    if (off.length > 0) wrong.push(`${owned}, which is switched off`);
    if (wrong.length === 0) return null;
    const code = unknown.length > 0 ? 'events_unknown' : 'events_off';
    const events = unknown.length > 0 ? unknown : off.map(({ name }) => name);
    return refusal(wrong.join('; '), code, { events: events.join(', ') });
  },
});

const HEADERS_MOVED = refusal(
  'must be given again if the address changes, because you may not reveal secrets',
  'headers_moved'
);

const addressOf = (url: string): string => urlOf(url)?.href ?? url;

/** True if headers move to another address or path without new values: then revealing secrets must be allowed. */
const movesHeaders = (
  before: Pick<WebhookRow, 'url' | 'headers'>,
  { url, headers }: Pick<UpdateWebhook, 'url' | 'headers'>
): boolean => {
  if (url === undefined || addressOf(url) === addressOf(before.url)) return false;
  const kept = headers === undefined ? headerNames(before) : keptNames(headers ?? {});
  return kept.length > 0;
};

/**
 * Checks a change against the current row in the writing transaction.
 * @param mayMoveHeaders whether the user may reveal secrets
 * @throws ValidationError (400) if it moves headers without values, keeps missing ones, or activates an unusable filter
 */
const judgeChange = (
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

const rows = (db: Db): Knex.QueryBuilder => db.table(WEBHOOKS_TABLE);

const NO_FAILURES = {
  disabled_reason: null,
  disabled_at: null,
  consecutive_failures: 0,
  failed_attempts: 0,
  failing_since: null,
};

/** @throws NotFoundError (404) if there is no such webhook */
export const findWebhook = async (app: App, id: number): Promise<WebhookRow> =>
  firstOrNotFound(rows(await app.db.current()).where({ id }), 'Webhook');

/** A change that is based on an outdated version; null if it is not. */
const changedMeanwhile = (row: WebhookRow, expected: string | undefined): Refused | null => {
  const at = Number(row.updated_at);
  if (expected === undefined || Date.parse(expected) === at) return null;
  const by = row.changed_by ?? '';
  const message = `This webhook was changed at ${isoTime(at)}${by && ` by ${by}`}. Read it again.`;
  return new Refused(message, 'changed_meanwhile', { by, at: isoTime(at) });
};

type Listed = ListedWebhook | WebhookSummary;

const EVENTS_SHOWN = 2;

const toSummary = (webhook: ListedWebhook): WebhookSummary => {
  const { id, name, url, active, events, health, last } = webhook;
  const said = Object.entries(health).filter(([, value]) => value !== null && value !== 0);
  return {
    ...{ id, name, url, active },
    events: events.slice(0, EVENTS_SHOWN),
    event_count: events.length,
    health: Object.fromEntries(said) as WebhookSummary['health'],
    last: last && { state: stateOf({ ...last, isTest: false }), error: last.error, at: last.at },
  };
};

/** Keeps webhooks, of checked input; docs/contract-webhooks.md#management-routes. Unknown ids: 404. */
export class WebhooksService {
  constructor(private readonly app: App) {}

  /** Webhooks whose name or address has `q` in it, in the order of `sort`, then of their ids. */
  async list({ q, sort, view, ...page }: WebhooksQuery): Promise<Page<Listed>> {
    await settleArrivedWebhooks(this.app);
    const db = await this.app.db.current();
    const [column = 'id', direction] = sort.split(':');
    const query = rows(db).select('*').orderBy(column, direction);
    if (q !== undefined) whereContains(this.app.db, query, ['name', 'url'], q);
    if (column !== 'id') query.orderBy('id');
    const { rows: listed, meta } = await readPage<WebhookRow>(db, query, page);
    const health = await readHealthOf(this.app, listed);
    const data: Listed[] = [];
    for (const [at, row] of listed.entries()) {
      const last = await readLastAnswer(db, Number(row.id));
      const managed = { ...toManaged(row, health[at] as Health), last };
      data.push(view === 'summary' ? toSummary(managed) : managed);
    }
    return { data, meta };
  }

  async get(id: number): Promise<ManagedWebhook> {
    const row = await this.findSettled(id);
    return toManaged(row, await this.healthOf(row));
  }

  /** With its secret and its own headers; each is null if it can no longer be decrypted. */
  async reveal(id: number): Promise<WebhookWithSecret> {
    const row = await this.findSettled(id);
    return this.withSecrets(row, unseal(this.app, row.secret));
  }

  async create({ headers, ...input }: CreateWebhook): Promise<WebhookWithSecret> {
    const secret = generateSecret();
    const at = Date.now();
    const row = await this.app.db.retrying(async () => {
      const { id } = await documentsOf(this.app.strapi, WEBHOOK).create({
        data: {
          ...input,
          headers: sealHeaders(this.app, headers),
          secret: seal(this.app, secret),
          created_at: at,
          updated_at: at,
        },
      });
      return findWebhook(this.app, Number(id));
    });
    if (row.active) await awaitOtherNodes(this.app);
    return this.withSecrets(row, secret);
  }

  /**
   * Activating keeps waiting deliveries, counted in its health, unless `waiting: 'discard'` ends them before.
   * @param mayMoveHeaders own headers may go to another address without being given again
   * @throws ValidationError (400) as `judgeChange` does
   */
  async update(
    id: number,
    { active, waiting, headers, if_updated_at: expected, ...input }: UpdateWebhook,
    { mayMoveHeaders, by = null }: { mayMoveHeaders: boolean; by?: string | null }
  ): Promise<ManagedWebhook | Refused> {
    const known = await this.findSettled(id);
    const conflict = changedMeanwhile(known, expected);
    if (conflict) return conflict;
    const change = { ...input, active, headers };
    judgeChange(known, change, mayMoveHeaders);
    if (active && !known.active && waiting === 'discard') await discardWaiting(this.app, id);
    const store = getDeliveryStore(this.app);
    const changed = await this.app.db.retrying(async (tx) => {
      // Recording an attempt locks its delivery, then its webhook: so does this.
      const isReordered =
        input.ordering !== undefined && input.ordering !== (known.ordering ?? 'none');
      if (isReordered) await store.queue.lockGroup(tx, id);
      // As it is now, and stays until the transaction ends: it may just be switched off.
      const locked = rows(tx).where({ id }).forUpdate();
      const before = await firstOrNotFound<WebhookRow>(locked, 'Webhook');
      const isLate = changedMeanwhile(before, expected);
      if (isLate) return isLate;
      judgeChange(before, change, mayMoveHeaders);
      const switchesOn = active === true && !before.active;
      // Deliveries that waited while it was off go out now.
      if (switchesOn) tx.onCommit(() => announceDeliveries(this.app, id));
      await documentsOf(this.app.strapi, WEBHOOK).update({
        documentId: before.document_id,
        data: {
          updated_at: Date.now(),
          ...definedOf({ ...input, active }),
          ...(headers !== undefined && { headers: sealHeaders(this.app, headers, before) }),
          ...(switchesOn && NO_FAILURES),
        },
      });
      await rows(tx).where({ id }).update({ changed_by: by });
      const after = await findWebhook(this.app, id);
      // A pause was asked for by the old receiver, and earlier attempts say nothing about the new one.
      const startsOver = switchesOn || after.url !== before.url;
      if (startsOver) {
        const activation = tx.raw('COALESCE(activation, 0) + 1');
        await rows(tx).where({ id }).update({ paused_until: null, activation });
      }
      const row = startsOver ? await findWebhook(this.app, id) : after;
      const ordering = row.ordering ?? 'none';
      if (ordering !== (before.ordering ?? 'none')) {
        // It may have been given another one since it was read.
        if (!isReordered) await store.queue.lockGroup(tx, id);
        await getDeliveryChanges(this.app).reorder(tx, { id, ordering });
      }
      return toManaged(row, await this.healthOf(row, switchesOn || !row.active));
    });
    if (changed instanceof Refused) return changed;
    store.limits.noteWebhook(changed);
    // Deliveries that a rate or an order held back may go now.
    announceDeliveries(this.app, id);
    await awaitOtherNodes(this.app);
    return changed;
  }

  /** Deletes the webhook, its log and its figures. */
  async remove(id: number): Promise<void> {
    const { document_id: documentId } = await findWebhook(this.app, id);
    await this.app.db.retrying(() => documentsOf(this.app.strapi, WEBHOOK).delete({ documentId }));
    await awaitOtherNodes(this.app);
    // Without its webhook a delivery is not claimed; the log is removed in batches. Running attempts lock in another
    // order.
    await removeDeliveriesOf(this.app, id);
    await removeRollupsOf(this.app, id);
    await this.app.db.retrying(() => getDeliveryStore(this.app).queue.forget(id));
  }

  /** Replaces the secret, for queued deliveries too; the old one signs as well for `overlap_hours`, or stops now. */
  async rotateSecret(id: number, { overlap_hours: hours }: RotateSecret, by: string | null = null) {
    const { document_id: documentId, secret: old } = await findWebhook(this.app, id);
    const secret = generateSecret();
    const at = Date.now();
    const data = {
      secret: seal(this.app, secret),
      previous_secret: hours > 0 ? old : null,
      previous_secret_until: hours > 0 ? at + Math.round(hours * HOUR_MS) : null,
      updated_at: at,
    };
    await this.app.db.retrying(async (tx) => {
      await documentsOf(this.app.strapi, WEBHOOK).update({ documentId, data });
      await rows(tx).where({ id }).update({ changed_by: by });
    });
    await awaitOtherNodes(this.app);
    return { secret };
  }

  /** The webhook for display, after settling imported ones. */
  private async findSettled(id: number): Promise<WebhookRow> {
    await settleArrivedWebhooks(this.app);
    return findWebhook(this.app, id);
  }

  private async healthOf(row: WebhookRow, saysWaiting = !row.active): Promise<Health> {
    const [health] = await readHealthOf(this.app, [row], saysWaiting);
    return health as Health;
  }

  private async withSecrets(row: WebhookRow, secret: string | null): Promise<WebhookWithSecret> {
    const health = await this.healthOf(row);
    return { ...toManaged(row, health), secret, headers: openHeaders(this.app, row) };
  }
}
