import { databases, type DatabaseKind, describeEach } from '../support/databases';
import type { Receiver } from '../support/receiver';
import type { Site } from '../support/site';
import { sleep, waitFor } from '../support/wait';
import { countRows, createWebhook, send, sql, useSiteAndReceiver } from './delivery-support';
import { createItem, createTill, eventOf, levelOf } from './pos-till';

/**
 * Ends the connection under the next `times` statements that name `pattern`: by the server's own
 * command where there is a server, with the driver's error for a locked file where there is none.
 */
const breakConnections = (site: Site, database: DatabaseKind, pattern: string, times: number) =>
  site.evaluate(
    ({ strapi, state }, kind, text, count) => {
      state.broken = 0;
      const { client } = strapi.db.connection;
      const isNext = (words: string): boolean => {
        if (!new RegExp(text, 'i').test(words) || state.broken >= count) return false;
        state.broken += 1;
        return true;
      };
      const lock = (): never => {
        throw Object.assign(new Error('database is locked'), { code: 'SQLITE_BUSY' });
      };
      if (kind === 'sqlite') {
        // Statements that are prepared once go by the query builder.
        const { prototype: driver } = client.driver;
        const prepare = driver.prepare;
        driver.prepare = function prepared(words: string) {
          const statement = prepare.call(this, words);
          for (const name of ['all', 'run']) {
            const method = statement[name];
            const value = (...values: unknown[]) =>
              isNext(words) ? lock() : method.apply(statement, values);
            Object.defineProperty(statement, name, { value, configurable: true });
          }
          return statement;
        };
        return;
      }
      const { prototype } = client.constructor;
      const original = prototype._query;
      prototype._query = async function query(connection: never, statement: never) {
        const { sql } = statement as { sql: string };
        if (isNext(sql)) {
          const raw = connection as { query(sql: string, done: () => void): void };
          const kill = (words: string) =>
            new Promise<void>((resolve) => raw.query(words, () => resolve()));
          if (kind === 'postgres') await kill('SELECT pg_terminate_backend(pg_backend_pid())');
          else await kill('KILL CONNECTION_ID()');
        }
        return original.call(this, connection, statement);
      };
    },
    database,
    pattern,
    times
  );

describeEach(databases(), 'a database whose connections break', (database) => {
  let site: Site;
  let receiver: Receiver;
  useSiteAndReceiver({ database, webhooks: { pollSeconds: 1 } }, (s, r) => {
    [site, receiver] = [s, r];
  });
  // SQLite's driver error is tried five times within each transaction.
  const faults = database === 'sqlite' ? 35 : 7;
  const broken = () => site.control<number>('state', { key: 'broken' });

  it('counts no try of a till’s record, which is applied once it is back', async () => {
    const till = await createTill(site);
    await createItem(site, 'SKU-1', 10);
    await breakConnections(site, database, 'insert into .*switchboard_movements', faults);
    const answer = await till.sale([['SKU-1', 1]]);
    expect(answer.status).toBe(202);
    const applied = await waitFor(
      async () => {
        const event = await eventOf(site, answer.body.event_id);
        expect(['pending', 'applied']).toContain(event.state);
        return event.state === 'applied' && event;
      },
      60_000,
      'the sale to be applied'
    );
    expect(await broken()).toBe(faults);
    expect(applied).toMatchObject({ state: 'applied', error: null });
    const [row] = await sql<{ tries: number }>(site, 'SELECT tries FROM switchboard_pos_events');
    expect(Number(row?.tries)).toBe(0);
    expect(await levelOf(site, 'SKU-1')).toBe(9);
    expect(site.log().match(/POS events: .* could not be recorded/g)).toHaveLength(1);
  }, 120_000);

  it('loses no outcome of a delivery: its receiver is posted to once', async () => {
    await createWebhook(site, receiver.url);
    await breakConnections(
      site,
      database,
      'update .*switchboard_deliveries.* set .*status',
      faults
    );
    expect(await send(site, 'order.placed', { n: 1 })).toBe(1);
    await receiver.waitFor(1);
    await waitFor(async () => (await countRows(site, "status = 'sent'")) === 1, 60_000);
    expect(await broken()).toBe(faults);
    await sleep(500);
    expect(receiver.requests).toHaveLength(1);
    expect(site.log().match(/deliveries: .* could not be recorded/g)).toHaveLength(1);
  }, 120_000);
});
