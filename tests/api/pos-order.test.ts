import fc from 'fast-check';
import { databases, describeEach } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { plainFold } from '../unit/stock/support/plain-fold';
import {
  type Input,
  ITEMS,
  LOCATIONS,
  openingOf,
  records,
  UNKNOWN_AT_FIRST,
} from '../unit/stock/support/world';
import { admin, allProcessed, createItem, createTill, rebuild, type Till } from './pos-till';

jest.setTimeout(600_000);

/** Each world is a set of items of its own, so that one site serves all of them. */
const WORLDS = Number(process.env.POS_WORLDS ?? 9);

/** Each database plays others. */
const SEED = Number(process.env.POS_SEED ?? 20261);

const BASE_TIME = Date.UTC(2026, 0, 1);

describeEach(databases(), 'stock does not depend on arrival, on a real site', (database) => {
  let first: Site;
  let second: Site;
  let places: Map<number, string>;

  const options = { pos: { ratePerMinute: 1_000_000, refundGraceHours: 0 } };

  beforeAll(async () => {
    first = await startSite({ database, options });
    // Two processes accept and apply at once; on SQLite the second one would wait for the file.
    second = database === 'sqlite' ? first : await first.sibling({ accounts: false });
    places = new Map();
    for (const location of LOCATIONS) {
      const { code } = await admin(first, 'POST', '/locations', {
        name: `Place ${location}`,
        code: `place-${location}`,
      });
      places.set(location, code);
    }
  });
  afterAll(async () => {
    if (second !== first) await second?.stop();
    await first?.stop();
  });

  const tillsOf = async (world: string): Promise<Map<number, Till>> => {
    const both = LOCATIONS.map((location) => ({
      ref: `l${location}`,
      location: places.get(location),
    }));
    const one = await createTill(first, { group: world, locations: both.slice(0, 1) });
    const two = await createTill(first, { group: world, locations: both });
    const three = await createTill(first, { locations: both.slice(1) });
    return new Map([
      [1, one],
      [2, two],
      [3, three],
    ]);
  };

  const makeItem = (world: string, item: number) =>
    createItem(first, `${world}-${item}`, 0, {
      opening: LOCATIONS.map((location) => ({
        location: places.get(location),
        quantity: openingOf(item, location),
      })),
    });

  const isoAt = (time: number): string => new Date(BASE_TIME + time * 60_000).toISOString();

  const bodyOf = (world: string, input: Input): { kind: string; body: Record<string, unknown> } => {
    const sku = (item: number): string => `${world}-${item}`;
    const lines = (list: readonly { item: number; quantity: number }[]) =>
      list.map(({ item, quantity }) => ({ sku: sku(item), quantity }));
    const base = { external_id: input.externalId, occurred_at: isoAt(input.time) };
    switch (input.kind) {
      case 'sale':
        return {
          kind: 'sale',
          body: {
            ...base,
            currency: 'GBP',
            total: 1,
            location_ref: `l${input.location}`,
            line_items: lines(input.lines),
          },
        };
      case 'refund':
        return {
          kind: 'refund',
          body: {
            ...base,
            sale_external_id: input.saleExternalId,
            restock: input.restock,
            ...(input.lines && { line_items: lines(input.lines) }),
            ...(input.namedLocation !== 'none' && { location_ref: `l${input.namedLocation}` }),
          },
        };
      default:
        return {
          kind: 'inventory',
          body: {
            ...base,
            mode: input.kind === 'count' ? 'absolute' : 'relative',
            location_ref: `l${input.location}`,
            counts: lines(input.lines),
          },
        };
    }
  };

  /** Connections 1 and 3 map one location: what names the other one there would wait for ever. */
  const isPlaceable = (input: Input): boolean => {
    const only = [null, 1, null, 2][input.connection];
    if (input.kind === 'refund')
      return only === null || input.namedLocation === 'none' || input.namedLocation === only;
    return only === null || input.location === only;
  };

  it(`${WORLDS} random worlds, in random order, with duplicates, on several connections at once: the plain fold`, async () => {
    // Two tills that send one sale id in one group leave a refund to the owner; the plain fold
    // knows that case too.
    const worlds = fc.sample(
      fc.tuple(records(true), fc.infiniteStream(fc.double({ noNaN: true, min: 0, max: 1 }))),
      { numRuns: WORLDS, seed: SEED + databases().indexOf(database) }
    );
    const expected = new Map<string, number>();
    const sendings: { till: Till; kind: string; body: Record<string, unknown>; at: number }[] = [];
    for (const [index, [sampled, random]] of worlds.entries()) {
      const inputs = sampled.filter(isPlaceable);
      const world = `w${database}${index}`;
      const tills = await tillsOf(world);
      for (const item of ITEMS) {
        if (!UNKNOWN_AT_FIRST.includes(item)) await makeItem(world, item);
      }
      for (const input of inputs) {
        const till = tills.get(input.connection) as Till;
        const times = 1 + Math.floor((random.next().value ?? 0) * 3);
        for (let copy = 0; copy < times; copy += 1) {
          const at = random.next().value ?? 0;
          sendings.push({ till, ...bodyOf(world, input), at });
        }
      }
      for (const [key, quantity] of Object.entries(plainFold(inputs))) {
        const [item = '', location = ''] = key.split('@');
        expected.set(`${world}-${item}@place-${location}`, quantity);
      }
    }
    sendings.sort((a, b) => a.at - b.at);
    const learnAt = Math.floor(sendings.length / 2);
    for (let start = 0; start < sendings.length; start += 8) {
      const chunk = sendings.slice(start, start + 8);
      const answers = await Promise.all(
        chunk.map(({ till, kind, body }, index) => {
          const site = index % 2 === 0 ? first : second;
          return till.send(kind, body, { to: site });
        })
      );
      for (const answer of answers) expect([200, 202, 409]).toContain(answer.status);
      if (start <= learnAt && learnAt < start + 8) {
        for (let index = 0; index < WORLDS; index += 1) {
          for (const item of UNKNOWN_AT_FIRST) await makeItem(`w${database}${index}`, item);
        }
      }
    }
    await allProcessed(first, 120_000);
    // What the new items woke is not pending; give it its turn.
    const queueIsEmpty = async (): Promise<boolean> => {
      const [row] = await first.control('sql', {
        statement: 'SELECT COUNT(*) AS n FROM switchboard_record_queue WHERE state = 0',
      });
      return Number(row.n) === 0;
    };
    const deadline = Date.now() + 120_000;
    while (!(await queueIsEmpty())) {
      if (Date.now() > deadline) throw new Error('the queue does not empty');
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    const rows = await first.control('sql', {
      statement:
        'SELECT i.sku AS sku, p.code AS code, l.quantity AS quantity FROM switchboard_levels l ' +
        'JOIN switchboard_items i ON i.id = l.item_id JOIN switchboard_locations p ON p.id = l.location_id ' +
        "WHERE p.code LIKE 'place-%'",
    });
    const levels = new Map(
      (rows as { sku: string; code: string; quantity: number | string }[]).map((row) => [
        `${row.sku}@${row.code}`,
        Number(row.quantity),
      ])
    );
    const wrong = [...expected].filter(([key, quantity]) => levels.get(key) !== quantity);
    expect(wrong.map(([key, quantity]) => ({ key, quantity, stored: levels.get(key) }))).toEqual(
      []
    );
    expect(await admin(first, 'GET', '/pos-events?state=failed')).toEqual([]);
    expect((await rebuild(first)).differences).toEqual([]);
  });
});
