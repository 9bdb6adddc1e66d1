import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import type { Page, Webhook, WebhookWithSecret } from '../../../shared/contracts/webhooks';
import { currentExecutor, type Executor, inTransaction, table } from '../database/connection';
import { firstOrNotFound } from '../database/first-or-not-found';
import { withTransientRetry } from '../database/retry';
import type { AddressGuard } from '../net/guard';
import { countUpToLimit, type PageRequest, paginationMeta } from '../pagination';
import { seal, unseal } from '../secrets/secret-box';
import { fieldError } from '../validation';
import { declaredEvents } from './catalogue';
import type { CreateWebhook, UpdateWebhook } from './inputs';
import { getOutbox } from './outbox';
import { generateSecret } from './rules/signature';
import { toWebhook, toWebhookWithSecret } from './serialize';
import { getSender } from './running';
import { forgetSubscriptions } from './subscriptions';
import { DELIVERIES_TABLE, type WebhookRow, WEBHOOKS_TABLE } from './tables';

const DELETE_BATCH = 1000;

/** Keeps webhooks; specification 1, Endpoints. Unknown ids are a NotFoundError (404). */
export interface WebhooksService {
  list(page: PageRequest): Promise<Page<Webhook>>;
  get(id: number): Promise<WebhookWithSecret>;
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

  /** A name that does not resolve yet is accepted: the receiver may not be up. */
  const checkUrl = async (url: string): Promise<void> => {
    const guard: AddressGuard = getSender(strapi).guard;
    const judged = await guard.checkUrl(url);
    if (judged.verdict === 'invalid' || judged.verdict === 'refused') {
      throw fieldError('url', judged.reason);
    }
  };

  /** Names that are kept from before stay allowed: the plugin that declared them may be away. */
  const checkEvents = async (names: readonly string[], kept: readonly string[]): Promise<void> => {
    const declared = await declaredEvents(strapi);
    const unknown = names.filter(
      (name) => name !== '*' && !Object.hasOwn(declared, name) && !kept.includes(name)
    );
    if (unknown.length > 0) throw fieldError('events', `unknown event ${unknown.join(', ')}`);
  };

  return {
    async list(page) {
      const executor = await currentExecutor(strapi);
      const counted = await countUpToLimit(executor as Knex, rows(executor));
      const found = (await rows(executor)
        .select('*')
        .orderBy('id')
        .limit(page.per_page)
        .offset((page.page - 1) * page.per_page)) as WebhookRow[];
      return { data: found.map(toWebhook), meta: paginationMeta(page, counted) };
    },

    async get(id) {
      const row = await find(id);
      return toWebhookWithSecret(row, unseal(strapi, row.secret));
    },

    async create({ name, url, events, active }) {
      await checkUrl(url);
      await checkEvents(events, []);
      const secret = generateSecret();
      const at = Date.now();
      const row = {
        name,
        url,
        events: JSON.stringify(events),
        active,
        secret: seal(strapi, secret),
        disabled_reason: null,
        disabled_at: null,
        consecutive_failures: 0,
        created_at: at,
        updated_at: at,
      };
      const id = await inTransaction(strapi, async ({ trx }) => {
        const [inserted] = (await rows(trx).insert(row, ['id'])) as ({ id: number } | number)[];
        await forgetSubscriptions(strapi);
        return Number(typeof inserted === 'object' ? inserted.id : inserted);
      });
      return toWebhookWithSecret({ id, ...row }, secret);
    },

    async update(id, { name, url, events, active }) {
      const before = await find(id);
      if (url !== undefined && url !== before.url) await checkUrl(url);
      if (events) await checkEvents(events, JSON.parse(before.events) as string[]);
      return inTransaction(strapi, async ({ trx, onCommit }) => {
        const changes: Partial<WebhookRow> = { updated_at: Date.now() };
        if (name !== undefined) changes.name = name;
        if (url !== undefined) changes.url = url;
        if (events !== undefined) changes.events = JSON.stringify(events);
        if (active !== undefined) changes.active = active;
        if (active && !before.active) {
          Object.assign(changes, {
            disabled_reason: null,
            disabled_at: null,
            consecutive_failures: 0,
          });
          // What waited while it was off goes out now.
          onCommit(getOutbox(strapi).wake);
        }
        await rows(trx).where({ id }).update(changes);
        await forgetSubscriptions(strapi);
        return toWebhook(await find(id));
      });
    },

    async remove(id) {
      await find(id);
      await rows(await currentExecutor(strapi))
        .where({ id })
        .delete();
      // After its webhook nothing claims a delivery any more; the log goes in small batches.
      const removeSome = async (): Promise<number> => {
        const executor = await currentExecutor(strapi);
        const some = (await table(strapi, executor, DELIVERIES_TABLE)
          .select('id')
          .where({ webhook_id: id })
          .orderBy('id')
          .limit(DELETE_BATCH)) as { id: number }[];
        if (some.length === 0) return 0;
        const ids = some.map((row) => row.id);
        await table(strapi, executor, DELIVERIES_TABLE).whereIn('id', ids).delete();
        return ids.length;
      };
      // Attempts that were under way are being recorded, in an order of their own.
      const patiently = strapi.db.inTransaction()
        ? removeSome
        : () => withTransientRetry(removeSome);
      while ((await patiently()) > 0) continue;
    },

    async rotateSecret(id) {
      await find(id);
      const secret = generateSecret();
      await rows(await currentExecutor(strapi))
        .where({ id })
        .update({ secret: seal(strapi, secret), updated_at: Date.now() });
      return { secret };
    },
  };
};
