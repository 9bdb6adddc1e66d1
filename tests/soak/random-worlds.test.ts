import { randomInt } from 'node:crypto';
import fc from 'fast-check';
import { databases, describeEach } from '../support/databases';
import { seededChance } from '../support/seeded-chance';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import { plainFold } from '../unit/stock/support/plain-fold';
import {
  type Input,
  ITEMS,
  LOCATIONS,
  openingOf,
  records,
  UNKNOWN_AT_FIRST,
} from '../unit/stock/support/world';
import { admin, createItem, createTill, eventOf, rebuild, type Till } from '../api/pos-till';

/**
 * Worlds of records that tills and people send, each played twice at once in two random orders: with
 * repeats, in batches, by several tills, through two nodes, while items become known, values are mapped
 * to the wrong item and back, connections change their groups and items are archived for a while. In the
 * end both have the shelves of a plain model, and agree in all else.
 *
 * RANDOM_WORLDS_SECONDS: how long each database is played with; a minute if left out.
 * RANDOM_WORLDS_SEED: a run's seed, which it prints, plays the same worlds.
 */
const SECONDS = Number(process.env.RANDOM_WORLDS_SECONDS ?? 60);
const SEED = Number(process.env.RANDOM_WORLDS_SEED ?? randomInt(2 ** 31 - 1));
/** Played beside each other. */
const AT_ONCE = 2;
const IN_PARALLEL = 8;
const REBUILD_EVERY = 10;

jest.setTimeout((SECONDS + 600) * 1000);

const BASE_TIME = Date.UTC(2026, 0, 1);
const isoAt = (time: number): string => new Date(BASE_TIME + time * 60_000).toISOString();
const moneyOf = (input: Input): number => input.lines?.length ?? 1;

/** What people do by hand, at whole and a half minutes: no count of a till has the same time. */
interface ByHand {
  what: 'adjust' | 'transfer' | 'count';
  item: number;
  /** A transfer takes from it, to the other one. */
  location: number;
  quantity: number;
  time: number;
}

const otherThan = (location: number): number => 3 - location;

interface World {
  inputs: Input[];
  byHand: ByHand[];
}

const KNOWN = ITEMS.filter((item) => !UNKNOWN_AT_FIRST.includes(item));

const byHand: fc.Arbitrary<ByHand[]> = fc
  .array(
    fc.record({
      what: fc.constantFrom('adjust' as const, 'transfer' as const, 'count' as const),
      item: fc.constantFrom(...KNOWN),
      location: fc.constantFrom(...LOCATIONS),
      quantity: fc.integer({ min: 1, max: 6 }),
      time: fc.integer({ min: 1, max: 12 }).map((time) => time + 0.5),
    }),
    { maxLength: 4 }
  )
  .map((all) => {
    // Of two counts of one time the later arrival wins, so that the order would matter.
    const counted = new Set<string>();
    return all.filter((one) => {
      if (one.what !== 'count') return true;
      const key = `${one.item}@${one.location}@${one.time}`;
      if (counted.has(key)) return false;
      counted.add(key);
      return true;
    });
  });

const world: fc.Arbitrary<World> = fc.record({ inputs: records(true), byHand });

const inputsOfHand = (all: readonly ByHand[]): Input[] =>
  all.flatMap((one, index): Input[] => {
    const base = { connection: 0, externalId: `hand-${index}`, time: one.time };
    const line = (count: number) => [{ item: one.item, quantity: count }];
    switch (one.what) {
      case 'adjust':
        return [{ ...base, kind: 'adjustment', location: one.location, lines: line(one.quantity) }];
      case 'count':
        return [{ ...base, kind: 'count', location: one.location, lines: line(one.quantity) }];
      case 'transfer':
        return [
          { ...base, kind: 'adjustment', location: one.location, lines: line(-one.quantity) },
          {
            ...base,
            kind: 'adjustment',
            location: otherThan(one.location),
            lines: line(one.quantity),
          },
        ];
    }
  });

/** The next GTIN-13 of this run. */
let lastGtin = 0;
const newGtin = (): string => {
  lastGtin += 1;
  const digits = `2${String(lastGtin).padStart(11, '0')}`;
  const sum = [...digits].reduce((all, digit, at) => all + Number(digit) * (at % 2 ? 3 : 1), 0);
  return `${digits}${(10 - (sum % 10)) % 10}`;
};

/** Steps that follow each other, beside all other chains. */
type Chain = (() => Promise<void>)[];

/** One playing of a world, under names of its own. */
class Playing {
  private readonly tills = new Map<number, Till>();
  private readonly answers = new Map<string, { till: Till; event: number | null }>();
  private trial!: Till;
  private readonly closings: number[] = [];
  private readonly gtins = new Map(ITEMS.map((item) => [item, newGtin()]));

  constructor(
    private readonly first: Site,
    private readonly nodes: readonly Site[],
    private readonly name: string,
    private readonly world: World,
    private readonly chance: () => number
  ) {}

  private readonly sku = (item: number): string => `${this.name}-${item}`;
  /** Another name of an item, which is mapped to it in the end. */
  private readonly alias = (item: number): string => `${this.name}-alias-${item}`;
  private readonly pick = <T>(list: readonly T[]): T =>
    list[Math.floor(this.chance() * list.length)] as T;
  private readonly node = (): Site => this.pick(this.nodes);
  private readonly management = (method: string, path: string, body?: unknown, status?: number) =>
    admin(this.first, method, path, body, status);

  private makeItem(item: number): Promise<{ id: number }> {
    return createItem(this.first, this.sku(item), 0, {
      gtin: this.gtins.get(item),
      opening: LOCATIONS.map((location) => ({
        location: `place-${location}`,
        quantity: openingOf(item, location),
      })),
    });
  }

  async open(): Promise<void> {
    const scopes = ['sale:write', 'refund:write', 'inventory:write', 'closing:write'];
    const refs = LOCATIONS.map((at) => ({ ref: `l${at}`, location: `place-${at}` }));
    const make = (locations: typeof refs, more: object) =>
      createTill(this.first, { scopes, locations, customers: 'create', ...more });
    this.tills.set(1, await make(refs.slice(0, 1), { group: this.name }));
    this.tills.set(2, await make(refs, { group: this.name }));
    this.tills.set(3, await make(refs.slice(1), {}));
    this.trial = await make(refs, { mode: 'test', group: this.name });
    for (const item of KNOWN) await this.makeItem(item);
    await createItem(this.first, `${this.name}-other`, 0, {
      opening: LOCATIONS.map((location) => ({ location: `place-${location}`, quantity: 7 })),
    });
  }

  private bodyOf(input: Input): { kind: string; body: Record<string, unknown> } {
    const isNamedByGtin = input.kind === 'sale' || input.kind === 'refund';
    const nameOf = (item: number, index: number) => {
      // The same line has the same name in both orders.
      const by = (index + input.time) % 4;
      if (by === 0) return { sku: this.alias(item) };
      return by === 1 && isNamedByGtin
        ? { gtin: `0${this.gtins.get(item)}` }
        : { sku: this.sku(item) };
    };
    const lines = (list: readonly { item: number; quantity: number }[]) =>
      list.map(({ item, quantity }, index) => ({ ...nameOf(item, index), quantity }));
    const base = { external_id: input.externalId, occurred_at: isoAt(input.time) };
    switch (input.kind) {
      case 'sale':
        return {
          kind: 'sale',
          body: {
            ...base,
            currency: 'GBP',
            total: 100 * moneyOf(input),
            location_ref: `l${input.location}`,
            line_items: lines(input.lines),
            customer: { email: `${this.name}-${input.time % 2}@shop.example` },
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
  }

  private note(till: Till, id: string, body: { event_id?: number }): void {
    const key = `${till.id}/${id}`;
    const known = this.answers.get(key);
    if (known?.event) return;
    this.answers.set(key, { till, event: body.event_id ?? null });
  }

  private async send(input: Input, till: Till): Promise<void> {
    const { kind, body } = this.bodyOf(input);
    const alone = this.chance() < 0.7;
    const sent = alone
      ? await till.send(kind, body, { to: this.node() })
      : await till.send('batch', { records: [{ kind, body }] }, { to: this.node() });
    const answer = alone ? sent : { ...sent.body.results[0], body: sent.body.results[0] };
    if (![200, 202, 409].includes(answer.status)) {
      throw new Error(`${this.name}: ${kind} was answered ${answer.status}: ${sent.text}`);
    }
    if (till !== this.trial) this.note(till, input.externalId, answer.body);
  }

  /** Some records of one till in one request. */
  private async sendTogether(inputs: readonly Input[]): Promise<void> {
    const till = this.tills.get(inputs[0]?.connection ?? 0);
    if (!till) return;
    const all = inputs.map((input) => this.bodyOf(input));
    const { body } = await till.send('batch', { records: all }, { to: this.node() });
    for (const [index, input] of inputs.entries()) {
      const answer = body.results[index];
      if (![200, 202, 409].includes(answer.status)) throw new Error(JSON.stringify(answer));
      this.note(till, input.externalId, answer);
    }
  }

  private resolve = async (body: object): Promise<number> =>
    (await this.management('POST', '/mapping-inbox/resolve', body, 200)).id;

  /** A value that is mapped to something wrong for a while, and then to what it is. */
  private mapped(asked: object, wrong: readonly object[], right: () => Promise<unknown>): Chain {
    const ids: number[] = [];
    return [
      ...wrong.map((to) => async () => {
        ids.push(await this.resolve({ ...asked, to }));
      }),
      ...(wrong.length > 0
        ? [
            async () => {
              const id = ids.at(-1) as number;
              await this.management('POST', '/mapping-inbox/undo', { id }, 200);
            },
          ]
        : []),
      async () => {
        await right();
      },
    ];
  }

  private wrongOf(value: string): object[] {
    const other = { item: `${this.name}-other` };
    const all = [{ ignore: true }, other, { create: { sku: `${value}-made` } }];
    const first = this.pick(all);
    const count = Math.floor(this.chance() * 3);
    if (count === 0) return [];
    return count === 1 ? [first] : [first, other];
  }

  private chains(): Chain[] {
    const { inputs } = this.world;
    const chains: Chain[] = [];
    for (const input of inputs) {
      const till = this.tills.get(input.connection) as Till;
      const times = 1 + Math.floor(this.chance() * 3);
      for (let copy = 0; copy < times; copy += 1) chains.push([() => this.send(input, till)]);
      if (this.chance() < 0.3) chains.push([() => this.send(input, this.trial)]);
    }
    const ofTwo = inputs.filter(({ connection }) => connection === 2);
    if (ofTwo.length > 0) chains.push([() => this.sendTogether(ofTwo)]);
    for (const item of ITEMS) {
      const value = this.alias(item);
      // The right item may not be known yet, or be archived.
      const right = () =>
        waitFor(() => this.resolve({ kind: 'sku', value, to: { item: this.sku(item) } }));
      chains.push(this.mapped({ kind: 'sku', value }, this.wrongOf(value), right));
    }
    for (const item of UNKNOWN_AT_FIRST) {
      const value = this.sku(item);
      chains.push(
        this.mapped({ kind: 'sku', value }, this.wrongOf(value), () => this.makeItem(item))
      );
    }
    for (const [connection, missing] of [
      [1, 2],
      [3, 1],
    ] as const) {
      const till = this.tills.get(connection) as Till;
      const asked = { kind: 'location_ref', value: `l${missing}`, connection: till.id };
      const wrong = this.chance() < 0.5 ? [{ location: `place-${otherThan(missing)}` }] : [];
      const right = () => this.resolve({ ...asked, to: { location: `place-${missing}` } });
      chains.push(this.mapped(asked, wrong, right));
    }
    const moved = this.tills.get(this.pick([1, 2, 3])) as Till;
    const home = moved === this.tills.get(3) ? null : this.name;
    const away = home === null ? this.name : null;
    const move = (group: string | null) => async () => {
      await this.management('PUT', `/connections/${moved.id}`, { group });
    };
    if (this.chance() < 0.6) chains.push([move(away), move(home)]);
    if (this.chance() < 0.4) {
      const [item] = KNOWN;
      let id = 0;
      chains.push([
        async () => {
          const found = await this.management('GET', `/items?search=${this.sku(item as number)}`);
          id = found[0].id;
          await this.management('DELETE', `/items/${id}`, undefined, 204);
        },
        async () => {
          await this.management('PUT', `/items/${id}`, { archived: false });
        },
      ]);
    }
    for (const one of this.world.byHand) chains.push([() => this.byHand(one)]);
    for (const till of this.tills.values()) chains.push([() => this.close(till)]);
    return chains;
  }

  private async byHand(one: ByHand): Promise<void> {
    const item = await this.itemId(one.item);
    const at = { occurred_at: isoAt(one.time) };
    if (one.what === 'adjust') {
      const body = { ...at, location: `place-${one.location}`, quantity: one.quantity };
      await this.management('POST', `/items/${item}/adjust`, body, 201);
    } else if (one.what === 'transfer') {
      const [from, to] = [`place-${one.location}`, `place-${otherThan(one.location)}`];
      const lines = [{ item, quantity: one.quantity }];
      await this.management('POST', '/transfers', { ...at, from, to, lines }, 201);
    } else {
      const counts = [{ item, quantity: one.quantity }];
      const body = { ...at, location: `place-${one.location}`, counts };
      await this.management('POST', '/stocktakes', body, 201);
    }
  }

  private async itemId(item: number): Promise<number> {
    const sku = this.sku(item);
    const [row] = await this.first.control('sql', {
      statement: `SELECT id FROM switchboard_items WHERE sku = '${sku}'`,
    });
    return Number(row.id);
  }

  private async close(till: Till): Promise<void> {
    const { status, body, text } = await till.send('closing', {
      external_id: 'shift',
      occurred_at: isoAt(20),
      from: isoAt(0),
      to: isoAt(19),
      totals: [{ currency: 'GBP', sales: { count: 0, total: 0 }, refunds: { count: 0, total: 0 } }],
    });
    if (status !== 202) throw new Error(`a closing was answered ${status}: ${text}`);
    this.closings.push(body.event_id);
  }

  /** Everything, in an order of chance; the steps of a chain one after the other. */
  async play(): Promise<void> {
    const steps = this.chains().flatMap((chain) => {
      const times = chain.map(() => this.chance()).sort((a, b) => a - b);
      let before: Promise<void> = Promise.resolve();
      return chain.map((step, index) => ({
        at: times[index] as number,
        run: () => (before = before.then(step)),
      }));
    });
    steps.sort((a, b) => a.at - b.at);
    let next = 0;
    const lane = async (): Promise<void> => {
      for (let step = steps[next]; step; step = steps[next]) {
        next += 1;
        await step.run();
      }
    };
    await Promise.all(Array.from({ length: IN_PARALLEL }, lane));
  }

  /** A count that a wrong mapping's count made stale is the till's to send again. */
  async sendRefusedAgain(): Promise<void> {
    for (const input of this.world.inputs) {
      const till = this.tills.get(input.connection) as Till;
      const known = this.answers.get(`${till.id}/${input.externalId}`);
      if (known && known.event === null) await this.send(input, till);
    }
  }

  async levels(): Promise<Record<string, number>> {
    const rows = (await this.first.control('sql', {
      statement:
        'SELECT i.sku AS sku, p.code AS code, l.quantity AS quantity FROM switchboard_levels l ' +
        'JOIN switchboard_items i ON i.id = l.item_id JOIN switchboard_locations p ON p.id = l.location_id ' +
        `WHERE i.sku LIKE '${this.name}-%' AND p.code LIKE 'place-%'`,
    })) as { sku: string; code: string; quantity: number | string }[];
    return Object.fromEntries(
      rows.map(({ sku, code, quantity: level }) => [
        `${sku.slice(this.name.length + 1)}@${code.slice('place-'.length)}`,
        Number(level),
      ])
    );
  }

  /** All but the shelves, without what is of this playing alone: ids and names. */
  async rest(): Promise<unknown> {
    const states: Record<string, unknown> = {};
    for (const [connection, till] of this.tills) {
      for (const input of this.world.inputs) {
        // Whether a count is refused or accepted and stale hangs on the order.
        if (input.connection !== connection || input.kind === 'count') continue;
        const { event } = this.answers.get(`${till.id}/${input.externalId}`) ?? {};
        const { state, flags, waiting } = await eventOf(this.first, event as number);
        const kept = flags.filter((flag: string) => flag !== 'payload_mismatch').sort();
        const waits = JSON.stringify(waiting).replaceAll(this.name, '');
        states[`${connection}/${input.externalId}`] = { state, flags: kept, waits };
      }
    }
    const closings = [];
    for (const id of [...this.closings].sort((a, b) => a - b)) {
      const { state, closing, connection } = await eventOf(this.first, id);
      const till = [...this.tills].find(([, one]) => one.id === connection.id)?.[0];
      closings.push({ till, state, differences: closing.differences });
    }
    closings.sort((a, b) => (a.till ?? 0) - (b.till ?? 0));
    const values: number[] = [];
    for (const person of [0, 1]) {
      const [contact] = await this.first.control('documents', {
        uid: 'plugin::switchboard.contact',
        method: 'findMany',
        params: { filters: { email: `${this.name}-${person}@shop.example` } },
      });
      values.push(Number(contact?.lifetime_value ?? 0));
    }
    return { states, closings, values };
  }

  /** What the model says that the connections took, in all. */
  async takings(): Promise<number> {
    let sum = 0;
    for (const till of this.tills.values()) {
      const path = `/connections/${till.id}/summary?from=2025-12-30&to=2026-01-03`;
      const { totals } = await this.management('GET', path);
      for (const { sales } of totals) sum += sales.total;
    }
    return sum;
  }
}

const otherLevels = Object.fromEntries(LOCATIONS.map((location) => [`other@${location}`, 7]));

describeEach(databases(), 'random worlds', (database) => {
  let first: Site;
  let second: Site;

  beforeAll(async () => {
    const options = { pos: { ratePerMinute: 1_000_000, refundGraceHours: 0 } };
    first = await startSite({ database, options });
    // On SQLite the second one would wait for the file.
    second = database === 'sqlite' ? first : await first.sibling({ accounts: false });
    for (const location of LOCATIONS) {
      const code = `place-${location}`;
      await admin(first, 'POST', '/locations', { name: code, code });
    }
  }, 240_000);
  afterAll(async () => {
    if (second !== first) await second?.stop();
    await first?.stop();
  }, 120_000);

  const isQuiet = async (): Promise<boolean> => {
    for (const waiting of [
      'record_queue WHERE state = 0',
      'pos_closings WHERE due_at IS NOT NULL',
      'pos_purchases WHERE due_at IS NOT NULL',
    ]) {
      const [row] = await first.control('sql', {
        statement: `SELECT COUNT(*) AS n FROM switchboard_${waiting}`,
      });
      if (Number(row.n) > 0) return false;
    }
    return true;
  };
  const quiet = (): Promise<unknown> => waitFor(isQuiet, 120_000, 'all to be worked on');

  const playBoth = async (one: World, name: string, seed: number): Promise<Playing[]> => {
    const nodes = [first, second];
    const both = ['a', 'b'].map(
      (order, index) =>
        new Playing(first, nodes, `${name}${order}`, one, seededChance(seed + index))
    );
    for (const playing of both) await playing.open();
    await Promise.all(both.map((playing) => playing.play()));
    return both;
  };

  const model = (one: World): Record<string, number> => ({
    ...otherLevels,
    ...plainFold([...one.inputs, ...inputsOfHand(one.byHand)]),
  });

  it(`end as a plain model says, whatever the order (RANDOM_WORLDS_SEED=${SEED})`, async () => {
    const endsAt = Date.now() + SECONDS * 1000;
    let played = 0;
    for (let round = 0; Date.now() < endsAt; round += 1) {
      const seeds = Array.from({ length: AT_ONCE }, (_none, lane) => SEED + round * 97 + lane * 13);
      const worlds = seeds.map((seed) => fc.sample(world, { numRuns: 1, seed })[0] as World);
      const playings = await Promise.all(
        worlds.map((one, lane) => playBoth(one, `w${round}x${lane}`, seeds[lane] as number))
      );
      await quiet();
      for (const playing of playings.flat()) await playing.sendRefusedAgain();
      await quiet();
      for (const [lane, [a, b]] of playings.entries()) {
        const one = worlds[lane] as World;
        if (!a || !b) continue;
        const about = { seed: SEED, round, lane, world: one };
        const expected = model(one);
        for (const playing of [a, b]) {
          const levels = await playing.levels();
          const made = Object.keys(levels).filter((key) => !(key in expected));
          // What a wrong mapping made is archived, with nothing on its shelves.
          const all = { ...expected, ...Object.fromEntries(made.map((key) => [key, 0])) };
          expect({ ...about, levels }).toEqual({ ...about, levels: all });
          const sales = one.inputs.filter(({ kind }) => kind === 'sale');
          const takings = sales.reduce((sum, input) => sum + 100 * moneyOf(input), 0);
          expect({ ...about, takings: await playing.takings() }).toEqual({ ...about, takings });
        }
        expect({ ...about, rest: await b.rest() }).toEqual({ ...about, rest: await a.rest() });
        played += 1;
      }
      if (round % REBUILD_EVERY === 0) expect((await rebuild(first)).differences).toEqual([]);
    }
    expect(await admin(first, 'GET', '/pos-events?state=failed')).toEqual([]);
    expect((await rebuild(first)).differences).toEqual([]);
    console.log(`${played} random worlds on ${database}, RANDOM_WORLDS_SEED=${SEED}`);
    expect(played).toBeGreaterThan(0);
  });
});
