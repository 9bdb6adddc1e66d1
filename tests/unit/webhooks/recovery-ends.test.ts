import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { Core } from '@strapi/strapi';
import { knex, type Knex } from 'knex';
import { Database } from '../../../server/src/database/db';
import { readAgain, readEnds } from '../../../server/src/webhooks/recoveries/again';
import { firstOutcome } from '../../../server/src/webhooks/rules/recovery';
import {
  ATTEMPTS_TABLE,
  DELIVERIES_TABLE,
  DELIVERY_QUEUE_TABLE,
} from '../../../server/src/webhooks/tables';

describe('how attempts of a recovery’s deliveries ended', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'switchboard-ends-'));
  const open = (): Knex =>
    knex({
      client: 'better-sqlite3',
      connection: { filename: path.join(folder, 'a.db') },
      useNullAsDefault: true,
    });
  const [reader, writer] = [open(), open()];
  const dbOf = (connection: Knex) =>
    new Database({
      db: { connection, dialect: { client: 'sqlite' }, getSchemaName: () => undefined },
    } as unknown as Core.Strapi).pool;

  beforeAll(async () => {
    await writer.raw('PRAGMA journal_mode = WAL');
    await writer.schema.createTable(DELIVERIES_TABLE, (t) => {
      t.increments('id');
      t.string('status');
      t.integer('tries');
    });
    await writer.schema.createTable(DELIVERY_QUEUE_TABLE, (t) => {
      t.integer('id');
      t.integer('state');
    });
    await writer.schema.createTable(ATTEMPTS_TABLE, (t) => {
      t.increments('id');
      t.integer('delivery_id');
      t.string('error');
    });
  });
  afterAll(async () => {
    await Promise.all([reader.destroy(), writer.destroy()]);
    fs.rmSync(folder, { recursive: true, force: true });
  });

  /** An attempt has ended, as recording it writes it down. */
  const end = async (error: string | null): Promise<void> => {
    await writer(ATTEMPTS_TABLE).insert({ delivery_id: 1, error });
    if (error === null) await writer(DELIVERY_QUEUE_TABLE).delete();
    const status = error === null ? 'sent' : 'pending';
    await writer(DELIVERIES_TABLE).where({ id: 1 }).update({ status }).increment('tries', 1);
  };

  it('are those of its tries, though more end between any two statements', async () => {
    await writer(DELIVERIES_TABLE).insert({ id: 1, status: 'pending', tries: 1 });
    await writer(DELIVERY_QUEUE_TABLE).insert({ id: 1, state: 0 });
    await writer(ATTEMPTS_TABLE).insert({ delivery_id: 1, error: 'before' });
    // The recovery has queued it after one try; two have ended since, the first of them as a failure.
    await end('http_500');
    await end('http_500');
    /** What reads sees each time that one more attempt has ended after it was answered. */
    const between = new Proxy(reader, {
      apply: (target, _this, [name]: [string]) => {
        const query = target(name);
        const then = query.then.bind(query);
        query.then = ((done: (rows: unknown) => unknown, failed: (error: unknown) => unknown) =>
          then(async (rows: unknown) => {
            await end(null);
            return rows;
          }).then(done, failed)) as typeof query.then;
        return query;
      },
    });
    const found = (await readAgain(dbOf(between), [1])).get(1);
    const seen = (await readEnds(dbOf(between), [1])).get(1);
    expect(found?.tries).toBe(3);
    expect(seen?.ends).toHaveLength(seen?.tries ?? -1);
    const now = found && seen ? { ...found, tries: seen.tries } : found;
    expect(firstOutcome(1, now, seen?.ends ?? [])).toBe('failed');
    // What the tries of the first statement make of the ends of the second.
    expect(firstOutcome(1, found, [...(seen?.ends ?? []), true])).toBe('sent');
  });
});
