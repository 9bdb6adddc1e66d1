import { randomUUID } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { createAdminRole, createAdminUser } from '../support/accounts';
import { describeEach, anyDatabase } from '../support/databases';
import { send } from '../support/http';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import { admin, BASE, createItem, createTill, isoAgo, otherSecret, saleBody } from './pos-till';

interface Row {
  at: string;
  kind: string;
  code: string;
  message: string;
  external_id: string | null;
}

describeEach(anyDatabase(), 'the latest refusals of a connection', (database) => {
  let site: Site;

  beforeAll(async () => {
    site = await startSite({
      database,
      options: { pos: { ratePerMinute: 100_000, failedAuthPerMinute: 100_000 } },
    });
    await createItem(site, 'MUG', 10);
  }, 120_000);
  afterAll(() => site?.stop(), 60_000);

  const refusalsOf = async (id: number): Promise<Row[]> =>
    admin(site, 'GET', `/connections/${id}/refusals`);

  it('are told with kind, code, the till’s own message and the record’s id, newest first', async () => {
    const till = await createTill(site, { scopes: ['sale:write', 'inventory:write'] });
    const told: unknown[] = [];
    const refused = async (...asked: Parameters<typeof till.send>): Promise<void> => {
      const { body, status } = await till.send(...asked);
      expect(status).toBeGreaterThanOrEqual(400);
      told.unshift([asked[0], body.code, body.message]);
    };
    const sale = saleBody([['MUG', 0]]);
    await refused('sale', sale);
    await refused('sale', '{"external_id": "half');
    await refused('sale', { ...sale, external_id: 'a\u0000b' });
    await refused('sale', saleBody([['MUG', 1]]), { secret: otherSecret() });
    await refused('sale', saleBody([['MUG', 1]]), { timestamp: 1 });
    const refund = { external_id: 'r-1', sale_external_id: 's', occurred_at: isoAgo(0) };
    await refused('refund', refund);
    expect((await till.count([['MUG', 3]])).status).toBe(202);
    const stale = {
      external_id: 'c-1',
      occurred_at: isoAgo(3600),
      mode: 'absolute',
      counts: [{ sku: 'MUG', quantity: 4 }],
    };
    await refused('inventory', stale);

    const kept = await refusalsOf(till.id);
    expect(kept.map(({ kind, code, message }) => [kind, code, message])).toEqual(told);
    expect(kept.map(({ external_id: id }) => id)).toEqual([
      'c-1',
      'r-1',
      null,
      null,
      null,
      null,
      sale.external_id,
    ]);
    expect(kept.map(({ code }) => code)).toEqual([
      'stale_count',
      'insufficient_scope',
      'timestamp_outside_window',
      'signature_mismatch',
      'schema_invalid',
      'schema_invalid',
      'schema_invalid',
    ]);
    expect(Object.keys(kept[0]!).sort()).toEqual(['at', 'code', 'external_id', 'kind', 'message']);
    expect(Math.abs(Date.parse(kept[0]!.at) - Date.now())).toBeLessThan(60_000);
  });

  it('have those that were refused before the key was looked up', async () => {
    const till = await createTill(site);
    const large = await till.send('sale', Buffer.alloc(300_000, 0x20));
    const encoded = await till.send('sale', gzipSync('{}'), {
      headers: { 'content-encoding': 'gzip' },
    });
    expect([large.status, encoded.status]).toEqual([413, 415]);
    const kept = await waitFor(async () => {
      const found = await refusalsOf(till.id);
      if (found.length < 2) throw new Error(`${found.length} refusals`);
      return found;
    });
    expect(kept.map(({ code }) => code).sort()).toEqual([
      'payload_too_large',
      'unsupported_encoding',
    ]);
  });

  it('have a revoked key’s ping and records, and nothing of an unknown key', async () => {
    const till = await createTill(site);
    await admin(site, 'POST', `/connections/${till.id}/revoke`, undefined, 200);
    const ping = (key: string) =>
      send({ method: 'GET', url: `${site.url}${BASE}/ping`, headers: { 'x-pos-key': key } });
    expect((await ping(till.key)).status).toBe(401);
    expect((await ping('pos_live_nobody')).status).toBe(401);
    await till.sale([['MUG', 1]]);
    const kept = await refusalsOf(till.id);
    expect(kept.map(({ kind, code }) => `${kind} ${code}`)).toEqual([
      'sale revoked_key',
      'ping revoked_key',
    ]);
  });

  it('are the latest fifty, and go with their connection', async () => {
    const till = await createTill(site);
    const other = await createTill(site, { name: 'Till 2' });
    await other.sale([['MUG', -1]]);
    const ids = Array.from({ length: 57 }, () => randomUUID());
    for (const id of ids) await till.sale([['MUG', -1]], { external_id: id });
    const kept = await refusalsOf(till.id);
    expect(kept.map(({ external_id: id }) => id)).toEqual(ids.slice(-50).reverse());
    const stored = async (id: number): Promise<number> => {
      const rows = await site.control('sql', {
        statement: 'select id from switchboard_pos_refusals where connection_id = ?',
        bindings: [id],
      });
      return (rows as unknown[]).length;
    };
    expect(await stored(till.id)).toBe(50);
    expect(await stored(other.id)).toBe(await refusalsOf(other.id).then(({ length }) => length));
    await admin(site, 'DELETE', `/connections/${till.id}`, undefined, 204);
    expect(await stored(till.id)).toBe(0);
    expect(await stored(other.id)).toBe(1);
    const gone = await site.request('GET', `/switchboard/connections/${till.id}/refusals`);
    expect(gone.status).toBe(404);
  });

  it('of a flood that nobody signed are few, and it reaches no other connection', async () => {
    const till = await createTill(site);
    const flood = Array.from({ length: 300 }, () =>
      till.send('sale', '{}', { secret: otherSecret() })
    );
    for (const answer of await Promise.all(flood)) {
      expect([answer.status, answer.body.code]).toEqual([401, 'signature_mismatch']);
    }
    expect(await refusalsOf(till.id)).toHaveLength(50);
    // What was signed is kept after the flood's share of the minute is spent.
    await till.sale([['MUG', -1]], { external_id: 'mine' });
    expect((await refusalsOf(till.id))[0]).toMatchObject({ external_id: 'mine' });
    await till.send('sale', '{}', { secret: otherSecret() });
    expect((await refusalsOf(till.id))[0]).toMatchObject({ external_id: 'mine' });
  });

  it('are for those who may read connections', async () => {
    const till = await createTill(site);
    const ask = async (actions: string[]): Promise<number> => {
      const role = await createAdminRole(site, actions);
      const { token } = await createAdminUser(site, { role });
      const path = `/switchboard/connections/${till.id}/refusals`;
      return (await site.request('GET', path, { as: { token } })).status;
    };
    expect(await ask(['plugin::switchboard.connections.read'])).toBe(200);
    expect(await ask(['plugin::switchboard.pos-events.read'])).toBe(403);
    const nobody = await site.request('GET', `/switchboard/connections/${till.id}/refusals`, {
      as: 'nobody',
    });
    expect(nobody.status).toBe(401);
  });
});
