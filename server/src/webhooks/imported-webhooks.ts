import type { Knex } from 'knex';
import { documentsOf } from '../database/tables/internal-types';
import { CAME_FROM_ANOTHER_SITE } from '../database/site';
import { logFailure } from '../runtime/text';
import { nextTurn } from '../runtime/event-loop';
import { getDeliveryChanges } from './deliveries/changes';
import { repairSubscriptionIndex } from './subscriptions';
import { WEBHOOK, type WebhookRow, WEBHOOKS_TABLE } from './tables';
import type { App, Slot } from '../app';
import type { Db } from '../database/db';

const END_AT_ONCE = 1000;
const WEBHOOKS_AT_ONCE = 100;

/** Webhooks that an import or a transfer brought and that were not looked after yet. */
const arrived = (db: Db): Knex.QueryBuilder =>
  db.table(WEBHOOKS_TABLE).where((any) => {
    any.whereNot('origin_id', db.knex.ref('id')).orWhere((stranger) => {
      stranger.whereNot('site_instance', db.site.instance).andWhere((open) => {
        open
          .where({ active: true })
          .orWhereNull('disabled_reason')
          .orWhereNot('disabled_reason', CAME_FROM_ANOTHER_SITE);
      });
    });
  });

const settle = async (app: App, rows: readonly WebhookRow[]): Promise<void> => {
  const ids = rows.map(({ id }) => Number(id));
  // Deliveries that waited at the export are not sent by an import: the original did, or will.
  while ((await getDeliveryChanges(app).endImported(ids, END_AT_ONCE)) > 0) await nextTurn();
  const db = await app.db.current();
  const webhooks = () => db.table(WEBHOOKS_TABLE);
  const strangers = rows.filter((row) => app.site.isForeign(row));
  for (const row of strangers) {
    const off = {
      active: false,
      disabled_reason: CAME_FROM_ANOTHER_SITE,
      disabled_at: Date.now(),
    };
    await documentsOf(app.strapi, WEBHOOK).update({ documentId: row.document_id, data: off });
    // Overwrites any change that a lifecycle of the site's made to it.
    await webhooks().where({ id: row.id }).update(off);
  }
  if (strangers.length > 0) {
    const names = strangers.map(({ id, name }) => `${id} ${JSON.stringify(name)}`).join(', ');
    app.log.warn(
      `switchboard: switched off, because they came from another site: webhooks ${names}. Switch on ` +
        'the webhooks that should send from this site.'
    );
  }
  await webhooks()
    .whereIn('id', ids)
    .update({ origin_id: db.knex.ref('id') });
};

const settleAll = async (app: App): Promise<void> => {
  for (;;) {
    const rows = (await arrived(await app.db.current())
      .select('*')
      .orderBy('id')
      .limit(WEBHOOKS_AT_ONCE)) as WebhookRow[];
    if (rows.length === 0) break;
    await settle(app, rows);
    await nextTurn();
  }
  await repairSubscriptionIndex(app);
};

const settling = (): Slot<Promise<void>> => ({});

/**
 * Deactivates webhooks from another site, ends deliveries of imported ones and indexes them. A transfer may reach a
 * running site, so: at boot, periodically, and before webhooks are shown; publishing and sending check stamps.
 */
export const settleArrivedWebhooks = (app: App): Promise<void> => {
  // A caller within a transaction must not wait for work that waits for the transaction's end.
  if (app.db.inTransaction()) return settleAll(app);
  const slot = app.part(settling);
  slot.value ??= settleAll(app).finally(() => delete slot.value);
  return slot.value;
};

/** Settles by the clock: a failure (the site may be stopping) is tried again. */
export const settleArrivedWebhooksLater = (app: App): Promise<void> =>
  settleArrivedWebhooks(app).catch(
    logFailure(app, 'imported webhooks could not be switched off', 'debug')
  );
