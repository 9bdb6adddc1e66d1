import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import type { App } from '../../../server/src/app';
import { Database, type Tx } from '../../../server/src/database/db';
import { getDeliveryChanges } from '../../../server/src/webhooks/deliveries/changes';
import { BY_HAND } from '../../../server/src/webhooks/deliveries/store';
import { SECTIONS } from '../../../server/src/webhooks/rules/delivery-state';
import { DELIVERIES_TABLE, DELIVERY_QUEUE_TABLE } from '../../../server/src/webhooks/tables';
import { openMemoryDatabase } from '../../support/memory-database';

describe('discarding what waits for a webhook', () => {
  let connection: Knex;
  let app: App;
  beforeEach(async () => {
    connection = openMemoryDatabase();
    await connection.schema.createTable(DELIVERIES_TABLE, (t) => {
      t.increments('id');
      t.integer('webhook_id');
      for (const name of ['status', 'event', 'error']) t.string(name);
      for (const name of ['tries', 'created_at', 'next_attempt_at']) t.integer(name);
      t.boolean('is_test');
    });
    await connection.schema.createTable(DELIVERY_QUEUE_TABLE, (t) => {
      t.integer('id').primary();
      for (const name of ['group_id', 'state', 'due_at', 'leased_until', 'section'])
        t.integer(name);
      for (const name of ['owner', 'event', 'error']) t.string(name);
      t.integer('created_at');
    });
    const db = new Database({
      db: { connection, dialect: { client: 'sqlite' }, getSchemaName: () => undefined },
    } as unknown as Core.Strapi);
    Object.assign(db, { retrying: <T>(work: (tx: Tx) => Promise<T>) => work(db.pool as Tx) });
    const parts = new Map<unknown, unknown>();
    const part = <T>(make: (of: App) => T): T => {
      if (!parts.has(make)) parts.set(make, make(app));
      return parts.get(make) as T;
    };
    app = { db, part, options: { webhooks: {} } } as unknown as App;
  });
  afterEach(() => connection.destroy());

  const queue = async (webhook: number, isTest: boolean): Promise<void> => {
    const row = { webhook_id: webhook, status: 'pending', is_test: isTest, tries: 0 };
    const [id] = await connection(DELIVERIES_TABLE).insert(row);
    const place = { id, group_id: BY_HAND, state: 0, due_at: 1, section: SECTIONS.waiting };
    await connection(DELIVERY_QUEUE_TABLE).insert(place);
  };
  const discard = (force: boolean) => getDeliveryChanges(app).discard(1, 10, force);

  it('waits for one that is sent by hand, which comes back if it fails', async () => {
    await queue(1, false);
    expect(await discard(false)).toEqual({ ended: 0, isLeft: true });
    expect(await discard(true)).toEqual({ ended: 0, isLeft: false });
  });

  it('waits for no test, and for none of another webhook', async () => {
    await queue(1, true);
    await queue(2, false);
    expect(await discard(false)).toEqual({ ended: 0, isLeft: false });
  });
});
