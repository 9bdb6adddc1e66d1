import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createOfflineTill } from '../../till-client';
import { databases, describeEach } from '../support/databases';
import { endLeases } from '../support/leases';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import {
  admin,
  allProcessed,
  BASE,
  createItem,
  createTill,
  levelOf,
  rebuild,
  saleBody,
} from '../api/pos-till';

const IS_CI = process.env.CI === 'true';

const TILLS = 4;
/** Of each till. */
const RECORDS = IS_CI ? 100 : 250;
/** Fewer beside all other tests. SOAK_KILLS: so many a database instead. */
const KILLS = Number(process.env.SOAK_KILLS ?? (IS_CI ? 1 : 4));

jest.setTimeout(300_000 + 30_000 * KILLS);

describeEach(databases(), 'a site that is killed while tills send', (database) => {
  let site: Site;
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tills-'));

  beforeAll(async () => {
    site = await startSite({ database, options: { pos: { ratePerMinute: 1_000_000 } } });
  });
  afterAll(async () => {
    await site?.stop();
    fs.rmSync(folder, { recursive: true, force: true });
  });

  it(`kill -9 while ${TILLS * RECORDS} records stream in: nothing lost, nothing twice`, async () => {
    await createItem(site, 'CRASH', 10_000);
    const outcomes: string[] = [];
    let accepted = 0;
    const queues = [];
    for (let index = 0; index < TILLS; index += 1) {
      const { key, secret } = await createTill(site);
      const queue = createOfflineTill({
        url: `${site.url}${BASE}`,
        key,
        secret,
        folder: path.join(folder, String(index)),
        // The client waits as it would in a shop, only shorter.
        random: () => -0.95,
        onSettled: ({ outcome }) => {
          outcomes.push(outcome);
          if (outcome === 'accepted') accepted += 1;
        },
      });
      for (let sent = 0; sent < RECORDS; sent += 1) {
        await queue.sale(JSON.stringify(saleBody([['CRASH', 1]], { external_id: `sale-${sent}` })));
      }
      queues.push(queue);
    }
    for (const queue of queues) queue.run();
    for (let kill = 1; kill <= KILLS; kill += 1) {
      const goal = (TILLS * RECORDS * kill) / (KILLS + 1);
      await waitFor(() => accepted >= goal, 60_000, `${goal} accepted records`);
      await site.kill('SIGKILL');
      if (kill === KILLS) await endLeases(site);
      await site.restart();
    }
    await waitFor(() => accepted === TILLS * RECORDS, 120_000, 'every record to be accepted');
    for (const queue of queues) await queue.stop();
    await allProcessed(site, 90_000);
    expect(outcomes.filter((outcome) => !['accepted', 'waiting'].includes(outcome))).toEqual([]);
    expect(await levelOf(site, 'CRASH')).toBe(10_000 - TILLS * RECORDS);
    const [row] = await site.control('sql', {
      statement: 'SELECT COUNT(*) AS events FROM switchboard_pos_events',
    });
    expect(Number(row.events)).toBe(TILLS * RECORDS);
    expect((await rebuild(site)).differences).toEqual([]);
    expect(await admin(site, 'GET', '/pos-events?state=failed')).toEqual([]);
  });
});

describe('a record that cannot be applied', () => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({ options: { pos: { process: false } } });
  });
  afterAll(() => site?.stop());

  it('fails alone: its neighbours are applied, and it says why', async () => {
    await createItem(site, 'POISON', 10);
    const till = await createTill(site);
    const ids: number[] = [];
    for (let sent = 0; sent < 3; sent += 1) {
      ids.push((await till.sale([['POISON', 1]])).body.event_id);
    }
    await site.control('sql', {
      statement: `UPDATE switchboard_pos_events SET body = '{}' WHERE id = ${ids[1]}`,
    });
    await site.restart({ options: {} });
    await waitFor(async () => (await levelOf(site, 'POISON')) === 8, 20_000, 'the neighbours');
    const event = await waitFor(async () => {
      const found = await admin(site, 'GET', `/pos-events/${ids[1]}`);
      return found.error && found;
    });
    expect(event.state).toBe('pending');
    expect(event.error).toContain('not valid');
    expect((await rebuild(site)).differences).toEqual([]);
  });
});
