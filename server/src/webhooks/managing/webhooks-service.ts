import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import type { Page, Webhook, WebhookWithSecret } from '../../../../shared/contracts/webhooks';
import { currentExecutor, type Executor, table } from '../../database/connection';
import { firstOrNotFound } from '../../database/errors/first-or-not-found';
import { documentsOf } from '../../database/tables/internal-types';
import { inRetriedTransaction, withTransientRetry } from '../../database/errors/retry';
import { nextTurn } from '../../runtime/event-loop';
import { type PageRequest, readPage } from '../../http/pagination';
import { seal, unseal } from '../../secrets/secret-box';
import { settleArrivedWebhooks } from '../delivering/arrivals';
import type { CreateWebhook, UpdateWebhook } from './inputs';
import { announceDeliveries } from '../delivering/announce';
import { removeDeliveriesOf } from '../delivering/store/delivery-log';
import { generateSecret } from '../rules/signature';
import { toWebhook, toWebhookWithSecret } from '../serialize';
import { forgetSubscriptions } from '../subscriptions/current-subscriptions';
import { WEBHOOK, type WebhookRow, WEBHOOKS_TABLE } from '../tables';

const DELETE_BATCH = 1000;

/**
 * Keeps webhooks; docs/contract-webhooks.md#management-routes. Unknown ids are a NotFoundError (404).
 * What it is given has been checked (`webhook-rules.ts`).
 */
export interface WebhooksService {
  list(page: PageRequest): Promise<Page<Webhook>>;
  get(id: number): Promise<Webhook>;
  /** With its secret, which is null where it can no longer be decrypted. */
  reveal(id: number): Promise<WebhookWithSecret>;
  create(input: CreateWebhook): Promise<WebhookWithSecret>;
  update(id: number, input: UpdateWebhook): Promise<Webhook>;
  /** Deletes the webhook and its log. */
  remove(id: number): Promise<void>;
  /** Replaces the secret at once, for queued deliveries too. */
  rotateSecret(id: number): Promise<{ secret: string }>;
}

export const createWebhooksService = ({ strapi }: { strapi: Core.Strapi }): WebhooksService => {
  const rows = (executor: Executor): Knex.QueryBuilder => table(strapi, executor, WEBHOOKS_TABLE);

  const find = async (id: number): Promise<WebhookRow> =>
    firstOrNotFound(rows(await currentExecutor(strapi)).where({ id }), 'Webhook');

  /** As it is to be seen: what an import brought is looked after first. */
  const findSettled = async (id: number): Promise<WebhookRow> => {
    await settleArrivedWebhooks(strapi);
    return find(id);
  };

  /** Runs a statement again that a deadlock ended; within a caller's transaction nothing can be. */
  const patiently = <T>(statement: () => Promise<T>): Promise<T> =>
    strapi.db.inTransaction() ? statement() : withTransientRetry(statement);

  return {
    async list(page) {
      await settleArrivedWebhooks(strapi);
      const executor = await currentExecutor(strapi);
      const query = rows(executor).select('*').orderBy('id');
      const { rows: found, meta } = await readPage<WebhookRow>(executor, query, page);
      return { data: found.map(toWebhook), meta };
    },

    async get(id) {
      return toWebhook(await findSettled(id));
    },

    async reveal(id) {
      const row = await findSettled(id);
      return toWebhookWithSecret(row, unseal(strapi, row.secret));
    },

    async create({ name, url, events, active }) {
      const secret = generateSecret();
      const at = Date.now();
      const row = await inRetriedTransaction(strapi, async () => {
        const { id } = await documentsOf(strapi, WEBHOOK).create({
          data: {
            name,
            url,
            events,
            active,
            secret: seal(strapi, secret),
            created_at: at,
            updated_at: at,
          },
        });
        forgetSubscriptions();
        return find(Number(id));
      });
      return toWebhookWithSecret(row, secret);
    },

    async update(id, { name, url, events, active }) {
      const before = await findSettled(id);
      return inRetriedTransaction(strapi, async ({ onCommit }) => {
        const changes: Record<string, unknown> = { updated_at: Date.now() };
        if (name !== undefined) changes.name = name;
        if (url !== undefined) changes.url = url;
        if (events !== undefined) changes.events = events;
        if (active !== undefined) changes.active = active;
        if (active && !before.active) {
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
        return toWebhook(await find(id));
      });
    },

    async remove(id) {
      const { document_id: documentId } = await find(id);
      await patiently(() => documentsOf(strapi, WEBHOOK).delete({ documentId }));
      // After its webhook nothing claims a delivery any more; the log goes in small batches.
      // Attempts that were under way are being recorded, in an order of their own.
      while ((await removeDeliveriesOf(strapi, id, DELETE_BATCH)) > 0) await nextTurn();
    },

    async rotateSecret(id) {
      const { document_id: documentId } = await find(id);
      const secret = generateSecret();
      const data = { secret: seal(strapi, secret), updated_at: Date.now() };
      await patiently(() => documentsOf(strapi, WEBHOOK).update({ documentId, data }));
      return { secret };
    },
  };
};
