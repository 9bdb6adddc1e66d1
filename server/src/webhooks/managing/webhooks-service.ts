import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import type {
  Health,
  ManagedWebhook,
  Page,
  WebhookWithSecret,
} from '../../../../shared/contracts/webhooks';
import { currentExecutor, type Executor, table } from '../../database/connection';
import { whereContains } from '../../database/contains';
import { firstOrNotFound } from '../../database/errors/first-or-not-found';
import { documentsOf } from '../../database/tables/internal-types';
import { inRetriedTransaction, withTransientRetry } from '../../database/retry';
import { nextTurn } from '../../runtime/event-loop';
import { readPage } from '../../http/pagination';
import { seal, unseal } from '../../secrets/secret-box';
import { settleArrivedWebhooks } from '../sending/arrivals';
import type { CreateWebhook, WebhooksQuery, RotateSecret, UpdateWebhook } from './inputs';
import { beginActivation } from '../delivering/activation';
import { announceDeliveries } from '../delivering/announce';
import { discardWaiting } from '../delivering/discard';
import { getDeliveryStore } from '../deliveries/store';
import { removeDeliveriesOf } from '../deliveries/log';
import { generateSecret } from '../rules/signature';
import { readHealthOf, readWaiting } from '../figures/health';
import { removeRollupsOf } from '../figures/rollups';
import { openHeaders, sealHeaders } from '../own-headers';
import { toManaged, toWebhookWithSecret } from '../webhook';
import { judgeChange } from './webhook-rules';
import { forgetSubscriptions } from '../subscriptions/current-subscriptions';
import { WEBHOOK, type WebhookRow, WEBHOOKS_TABLE } from '../tables';

const DELETE_BATCH = 1000;
const HOUR_MS = 3_600_000;

/**
 * Keeps webhooks; docs/contract-webhooks.md#management-routes. Unknown ids are a NotFoundError (404).
 * What it is given has been checked (`webhook-rules.ts`).
 */
export interface WebhooksService {
  /** Those whose name or address has `q` in it, in the order of `sort`, then of their ids. */
  list(query: WebhooksQuery): Promise<Page<ManagedWebhook>>;
  get(id: number): Promise<ManagedWebhook>;
  /** With its secret and its own headers; each is null where it can no longer be decrypted. */
  reveal(id: number): Promise<WebhookWithSecret>;
  create(input: CreateWebhook): Promise<WebhookWithSecret>;
  /**
   * Where this switches it on, its health says what waited until now; with `waiting: 'discard'` that
   * ends before, and nothing of it is sent.
   * @param allowed `mayMoveHeaders`: own headers may go to another address without being given anew
   * @throws ValidationError (400) as `judgeChange` does
   */
  update(
    id: number,
    input: UpdateWebhook,
    allowed: { mayMoveHeaders: boolean }
  ): Promise<ManagedWebhook>;
  /** Deletes the webhook, its log and its figures. */
  remove(id: number): Promise<void>;
  /**
   * Replaces the secret, for queued deliveries too; the old one goes on signing beside the new one
   * for `overlap_hours`, or stops at once.
   */
  rotateSecret(id: number, overlap: RotateSecret): Promise<{ secret: string }>;
}

/** Without what nobody said. */
const definedOf = (input: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined));

export const createWebhooksService = ({ strapi }: { strapi: Core.Strapi }): WebhooksService => {
  const rows = (executor: Executor): Knex.QueryBuilder => table(strapi, executor, WEBHOOKS_TABLE);

  const find = async (id: number): Promise<WebhookRow> =>
    firstOrNotFound(rows(await currentExecutor(strapi)).where({ id }), 'Webhook');

  /** As it is now, and stays until the transaction ends: it may just be switched off. */
  const findLocked = async (id: number): Promise<WebhookRow> =>
    firstOrNotFound(
      rows(await currentExecutor(strapi))
        .where({ id })
        .forUpdate(),
      'Webhook'
    );

  /** As it is to be seen: what an import brought is looked after first. */
  const findSettled = async (id: number): Promise<WebhookRow> => {
    await settleArrivedWebhooks(strapi);
    return find(id);
  };

  const healthOf = async (row: WebhookRow, saysWaiting = !row.active): Promise<Health> => {
    if (saysWaiting) return readWaiting(strapi, row);
    const [health] = await readHealthOf(strapi, [row]);
    return health as Health;
  };

  const withSecrets = async (row: WebhookRow, secret: string | null): Promise<WebhookWithSecret> =>
    toWebhookWithSecret(row, await healthOf(row), { secret, headers: openHeaders(strapi, row) });

  /** Runs a statement again that a deadlock ended; within a caller's transaction nothing can be. */
  const patiently = <T>(statement: () => Promise<T>): Promise<T> =>
    strapi.db.inTransaction() ? statement() : withTransientRetry(statement);

  return {
    async list({ q, sort, ...page }) {
      await settleArrivedWebhooks(strapi);
      const executor = await currentExecutor(strapi);
      const [column = 'id', direction] = sort.split(':');
      const query = rows(executor).select('*').orderBy(column, direction);
      if (q !== undefined) whereContains(strapi, query, ['name', 'url'], q);
      if (column !== 'id') query.orderBy('id');
      const { rows: listed, meta } = await readPage<WebhookRow>(executor, query, page);
      const health = await readHealthOf(strapi, listed);
      return { data: listed.map((row, at) => toManaged(row, health[at] as Health)), meta };
    },

    async get(id) {
      const row = await findSettled(id);
      return toManaged(row, await healthOf(row));
    },

    async reveal(id) {
      const row = await findSettled(id);
      return withSecrets(row, unseal(strapi, row.secret));
    },

    async create({ headers, ...input }) {
      const secret = generateSecret();
      const at = Date.now();
      const row = await inRetriedTransaction(strapi, async () => {
        const { id } = await documentsOf(strapi, WEBHOOK).create({
          data: {
            ...input,
            headers: sealHeaders(strapi, headers),
            secret: seal(strapi, secret),
            created_at: at,
            updated_at: at,
          },
        });
        forgetSubscriptions();
        return find(Number(id));
      });
      return withSecrets(row, secret);
    },

    async update(id, { active, waiting, headers, ...input }, { mayMoveHeaders }) {
      const known = await findSettled(id);
      const change = { ...input, active, headers };
      judgeChange(known, change, mayMoveHeaders);
      if (active && !known.active && waiting === 'discard') await discardWaiting(strapi, id);
      const { before, changed } = await inRetriedTransaction(strapi, async ({ onCommit }) => {
        const before = await findLocked(id);
        judgeChange(before, change, mayMoveHeaders);
        const switchesOn = active === true && !before.active;
        const changes: Record<string, unknown> = {
          updated_at: Date.now(),
          ...definedOf({ ...input, active }),
        };
        if (headers !== undefined) changes.headers = sealHeaders(strapi, headers, before);
        if (switchesOn) {
          Object.assign(changes, {
            disabled_reason: null,
            disabled_at: null,
            consecutive_failures: 0,
            failed_attempts: 0,
            failing_since: null,
          });
          // What waited while it was off goes out now.
          onCommit(() => announceDeliveries(strapi, id));
        }
        await documentsOf(strapi, WEBHOOK).update({
          documentId: before.document_id,
          data: changes,
        });
        forgetSubscriptions();
        const after = await find(id);
        // Whoever asked for a pause may not be who answers there now.
        const beginsAnew = switchesOn || after.url !== before.url;
        if (beginsAnew) await beginActivation(strapi, id);
        const row = beginsAnew ? await find(id) : after;
        const switchedOn = Boolean(row.active) && !before.active;
        const health = await healthOf(row, switchedOn || !row.active);
        return { before, changed: toManaged(row, health) };
      });
      getDeliveryStore(strapi).heard(changed);
      if (changed.ordering !== (before.ordering ?? 'none')) {
        await getDeliveryStore(strapi).reorder(changed);
      }
      // What a rate or an order held back may go now.
      announceDeliveries(strapi, id);
      return changed;
    },

    async remove(id) {
      const { document_id: documentId } = await find(id);
      await patiently(() => documentsOf(strapi, WEBHOOK).delete({ documentId }));
      // After its webhook nothing claims a delivery any more; the log goes in small batches.
      // Attempts that were under way are being recorded, in an order of their own.
      while ((await removeDeliveriesOf(strapi, id, DELETE_BATCH)) > 0) await nextTurn();
      await patiently(() => removeRollupsOf(strapi, id));
      await patiently(() => getDeliveryStore(strapi).forget(id));
    },

    async rotateSecret(id, { overlap_hours: hours }) {
      const { document_id: documentId, secret: old } = await find(id);
      const secret = generateSecret();
      const at = Date.now();
      const data = {
        secret: seal(strapi, secret),
        previous_secret: hours > 0 ? old : null,
        previous_secret_until: hours > 0 ? at + Math.round(hours * HOUR_MS) : null,
        updated_at: at,
      };
      await patiently(() => documentsOf(strapi, WEBHOOK).update({ documentId, data }));
      return { secret };
    },
  };
};
