import fc from 'fast-check';
import { explainLevel, LevelsService } from '../../../server/src/stock/levels-service';
import { StocktakesService, StockTransfersService } from '../../../server/src/stock/by-hand';
import { appOf } from '../../../server/src/app';
import { Ledger } from '../../../server/src/stock/ledger';
import { skuDigest } from '../../../server/src/stock/items';
import { locationDigest } from '../../../server/src/stock/locations';
import { rebuildLevels } from '../../../server/src/stock/check-levels';
import {
  DOCUMENTS_TABLE,
  ITEMS_TABLE,
  type LevelRow,
  LEVELS_TABLE,
  LOCATIONS_TABLE,
  MOVEMENTS_TABLE,
} from '../../../server/src/stock/tables';
import { type SmallSite, startSmallSite } from '../../support/small-site';

jest.setTimeout(120_000);

const FIRST = Date.parse('2025-03-01T10:00:00Z');
const ITEMS = [1, 2];
const LOCATIONS = [1, 2, 3];

type Deed = { time: number; item: number; quantity: number } & (
  | { kind: 'transfer'; from: number; to: number }
  | { kind: 'count'; location: number }
  | { kind: 'adjust'; location: number }
);

const time = fc.integer({ min: 1, max: 20 });
const item = fc.constantFrom(...ITEMS);
const location = fc.constantFrom(...LOCATIONS);
const quantity = fc.integer({ min: 1, max: 9 });

const transfer: fc.Arbitrary<Deed> = fc
  .record({
    kind: fc.constant('transfer' as const),
    time,
    item,
    quantity,
    from: location,
    to: location,
  })
  .filter(({ from, to }) => from !== to);
const placed = <K extends 'count' | 'adjust'>(kind: K): fc.Arbitrary<Deed> =>
  fc.record({ kind: fc.constant(kind), time, item, quantity, location }) as fc.Arbitrary<Deed>;

/** Counts of one moment are a correction, whose later arrival wins: none of those here. */
const deeds = fc
  .array(fc.oneof(transfer, placed('count'), placed('adjust')), { maxLength: 12 })
  .map((list) => {
    const counted = new Set<string>();
    return list.filter((deed) => {
      if (deed.kind !== 'count') return true;
      const key = `${deed.item}@${deed.location}@${deed.time}`;
      const isNew = !counted.has(key);
      counted.add(key);
      return isNew;
    });
  });

const deltasOf = (deed: Deed): [location: number, quantity: number][] => {
  if (deed.kind === 'transfer')
    return [
      [deed.from, -deed.quantity],
      [deed.to, deed.quantity],
    ];
  return deed.kind === 'adjust' ? [[deed.location, deed.quantity]] : [];
};

/** The rule of stock in one go. */
const foldOf = (list: readonly Deed[], ofItem: number, at: number): number => {
  const own = list.filter((deed) => deed.item === ofItem);
  const counts = own.filter((deed) => deed.kind === 'count' && deed.location === at);
  const last = counts.reduce<Deed | null>((a, b) => (a && a.time > b.time ? a : b), null);
  const moved = own
    .filter((deed) => !last || deed.time > last.time)
    .flatMap(deltasOf)
    .reduce((sum, [place, delta]) => (place === at ? sum + delta : sum), 0);
  return (last?.quantity ?? 0) + moved;
};

describe('what is moved and counted by hand', () => {
  let site: SmallSite;
  beforeAll(async () => {
    site = await startSmallSite({}, 'http');
    for (const id of LOCATIONS) {
      const code = `location-${id}`;
      const row = { id, name: code, code, code_digest: locationDigest(code), is_default: id === 1 };
      await site.connection(LOCATIONS_TABLE).insert(row);
    }
    for (const id of ITEMS) {
      const sku = `sku-${id}`;
      await site
        .connection(ITEMS_TABLE)
        .insert({ id, sku, sku_digest: skuDigest(sku), low_at: 0, created_at: FIRST });
    }
  });
  afterAll(() => site.close());

  const play = async (list: readonly Deed[], order: readonly number[]): Promise<void> => {
    for (const name of [MOVEMENTS_TABLE, LEVELS_TABLE, DOCUMENTS_TABLE]) {
      await site.connection(name).delete();
    }
    const { strapi } = site;
    for (const index of order) {
      const deed = list[index];
      if (!deed) continue;
      const occurred = FIRST + deed.time * 1000;
      const { item: id, quantity: pieces } = deed;
      if (deed.kind === 'transfer') {
        const lines = [{ item: id, quantity: pieces }];
        const { from, to } = deed;
        const input = { external_id: `t${index}`, from, to, occurred_at: occurred, lines };
        await new StockTransfersService(appOf(strapi)).transfer(input, null);
      } else if (deed.kind === 'count') {
        const counts = [{ item: id, quantity: pieces }];
        const input = { location: deed.location, occurred_at: occurred, counts, preview: false };
        await new StocktakesService(appOf(strapi)).stocktake(input, null);
      } else {
        const input = { location: deed.location, quantity: pieces, occurred_at: occurred };
        await new LevelsService(appOf(strapi)).adjust(id, { ...input, preview: false }, null);
      }
    }
  };

  it('gives the same shelf in any order, with transfers sent again: that of the plain fold', async () => {
    const runs = deeds.chain((list) => {
      const indexes = [...list.keys()];
      const again = indexes.filter((index) => list[index]?.kind === 'transfer');
      return fc.record({
        list: fc.constant(list),
        order: fc
          .tuple(
            fc.shuffledSubarray(indexes, { minLength: list.length }),
            fc.shuffledSubarray(again)
          )
          .map((parts) => parts.flat()),
      });
    });
    await fc.assert(
      fc.asyncProperty(runs, async ({ list, order }) => {
        await play(list, order);
        const rows = (await site.connection(LEVELS_TABLE).select('*')) as LevelRow[];
        for (const { id, item_id: ofItem, location_id: at, quantity: stored } of rows) {
          expect(Number(stored)).toBe(foldOf(list, Number(ofItem), Number(at)));
          const { strapi } = site;
          const { terms } = await explainLevel(appOf(strapi), Number(id));
          expect(terms.reduce((sum, term) => sum + term.quantity, 0)).toBe(Number(stored));
        }
        const { differences } = await rebuildLevels(appOf(site.strapi));
        expect(differences).toEqual([]);
        const sides = await site.connection(MOVEMENTS_TABLE).where({ type: 'transfer' });
        expect(sides).toHaveLength(2 * list.filter(({ kind }) => kind === 'transfer').length);
      }),
      { numRuns: 25 }
    );
  });

  it('dates an adjustment when it has locked its level, after a count that it waited for', async () => {
    await play([], []);
    const app = appOf(site.strapi);
    const { lock } = Ledger.prototype;
    let countedAt = 0;
    const waiting = jest.spyOn(Ledger.prototype, 'lock').mockImplementationOnce(async function (
      this: Ledger,
      places
    ) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      countedAt = Date.now();
      await new Promise((resolve) => setTimeout(resolve, 5));
      await lock.call(this, places);
      await this.count(
        places.map((place) => ({
          ...place,
          at: countedAt,
          quantity: 5,
          eventId: null,
          note: null,
          line: 0,
        }))
      );
    });
    await new LevelsService(app).adjust(1, { location: 1, quantity: 2, preview: false }, null);
    waiting.mockRestore();
    const level = await new LevelsService(app).at(1, 1);
    expect(level.quantity).toBe(7);
  });
});
