import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import type { ChangePreview, Stocktake, StocktakeLine } from '../../../shared/contracts/stock';
import type { Page } from '../../../shared/contracts/webhooks';
import { currentExecutor, type Executor, inTransaction, table } from '../database/connection';
import { firstOrNotFound } from '../database/errors/first-or-not-found';
import { inRetriedTransaction } from '../database/retry';
import type { PageRequest } from '../http/pagination';
import { fieldError } from '../http/validation';
import { isoTime } from '../runtime/iso-time';
import { getPublisher } from '../webhooks/publish';
import type { Adjust, StocktakeInput } from './inputs';
import { type AskedCounting, createLedger, type LedgerLine } from './ledger';
import { locationFromInput } from './locations';
import { stockChangeEvents } from './events';
import { type ItemRow, ITEMS_TABLE, type LocationRow } from './tables';
import {
  askedLines,
  type AskedLine,
  type DocumentShape,
  getDocument,
  insertDocument,
  itemOfLine,
  listDocuments,
  summaryOfLocation,
  timeOf,
} from './by-hand/documents';
import { refusal } from '../runtime/refusal';

/** Counts by hand; docs/tills.md#counting-by-hand. */
export interface StocktakesService {
  /**
   * One count of many items, dated when counting began. A preview says what each level is and would
   * be, and stores nothing.
   * @throws ValidationError (400) that names the field
   */
  stocktake(input: StocktakeInput, madeBy: string | null): Promise<Stocktake>;
  /** Newest first. */
  list(page: PageRequest): Promise<Page<Stocktake>>;
  /** @throws NotFoundError (404) */
  get(id: number): Promise<Stocktake>;
  /** Sets one level to what was counted, as a stocktake of one item. @throws NotFoundError (404) */
  setTo(itemId: number, input: Adjust, madeBy: string | null): Promise<void>;
  /** What a level is, and would be after a change by hand. @throws NotFoundError (404) */
  preview(itemId: number, input: Adjust): Promise<ChangePreview>;
}

/**
 * Orders a count by hand among counts of the very same time: after all that tills sent, whose `seq`
 * is their event's id, and among those by hand as they were made.
 */
const BY_HAND = 2_147_483_648;
const NEXT_DOCUMENT = 2_147_483_647;

interface Count {
  place: LocationRow;
  at: number;
  lines: readonly AskedLine[];
}

const lineOf = (
  item: StocktakeLine['item'],
  { quantity, effect, reason, quantityAfter }: Omit<LedgerLine, 'item' | 'location'>
): StocktakeLine => ({
  item,
  counted: quantity,
  before: quantityAfter - effect,
  after: quantityAfter,
  reason,
});

const toStocktake: DocumentShape<Stocktake> = (row, lines, locations) => ({
  id: Number(row.id),
  location: summaryOfLocation(locations.get(Number(row.location_id))),
  occurred_at: isoTime(Number(row.at)),
  made_by: row.made_by,
  created_at: isoTime(Number(row.created_at)),
  counts: lines.map((line) => ({
    item: itemOfLine(line),
    counted: Number(line.quantity),
    before: Number(line.quantity_after) - Number(line.effect),
    after: Number(line.quantity_after),
    reason: line.reason,
  })),
});

/** What the ledger is asked for. */
const askedOf = (
  { place, at, lines }: Count,
  document: number,
  madeBy: string | null
): AskedCounting[] =>
  lines.map(({ item, quantity, note }, line) => ({
    item: Number(item.id),
    location: Number(place.id),
    at,
    quantity,
    eventId: null,
    note,
    line,
    seq: BY_HAND + document,
    documentId: document,
    madeBy,
  }));

/** Puts a count into the ledger, as a document of its own. @returns the document's id */
const store = async (
  strapi: Core.Strapi,
  trx: Knex.Transaction,
  count: Count,
  madeBy: string | null
): Promise<number> => {
  const document = await insertDocument(strapi, trx, {
    kind: 'stocktake',
    external_id: null,
    at: count.at,
    location_id: Number(count.place.id),
    to_location_id: null,
    made_by: madeBy,
  });
  const asked = askedOf(count, document, madeBy);
  const ledger = createLedger(strapi, trx);
  await ledger.lock(asked);
  await ledger.count(asked);
  const changes = await ledger.flush();
  await getPublisher(strapi).publish(await stockChangeEvents(strapi, trx, changes));
  return document;
};

const tryCount = async (
  strapi: Core.Strapi,
  trx: Knex.Transaction,
  count: Count
): Promise<LedgerLine[]> => {
  const asked = askedOf(count, NEXT_DOCUMENT, null);
  const ledger = createLedger(strapi, trx, { simulate: true });
  await ledger.lock(asked);
  return ledger.count(asked);
};

const countFrom = async (
  strapi: Core.Strapi,
  trx: Executor,
  { location, occurred_at: occurredAt, counts }: StocktakeInput
): Promise<Count> => {
  const at = timeOf(occurredAt);
  const place = await locationFromInput(strapi, trx, location, 'location');
  const lines = await askedLines(strapi, trx, counts, 'counts');
  const seen = new Set<number>();
  for (const [index, { item }] of lines.entries()) {
    if (seen.has(Number(item.id)))
      throw fieldError(`counts.${index}.item`, refusal('is named twice', 'named_twice'));
    seen.add(Number(item.id));
  }
  return { place, at, lines };
};

/** One item at one place, as a change by hand names them. */
const countOfOne = async (
  strapi: Core.Strapi,
  trx: Executor,
  itemId: number,
  { location, occurred_at: occurredAt, reason, counted = 0 }: Adjust
): Promise<Count> => {
  const query = table(strapi, trx, ITEMS_TABLE).where({ id: itemId });
  const item = await firstOrNotFound<ItemRow>(query, 'Item');
  const at = timeOf(occurredAt);
  const place = await locationFromInput(strapi, trx, location, 'location');
  return { place, at, lines: [{ item, quantity: counted, note: reason ?? null }] };
};

const previewOf = (
  strapi: Core.Strapi,
  input: StocktakeInput,
  madeBy: string | null
): Promise<Stocktake> =>
  inTransaction(strapi, async ({ trx }) => {
    const count = await countFrom(strapi, trx, input);
    const lines = await tryCount(strapi, trx, count);
    return {
      id: null,
      location: summaryOfLocation(count.place),
      occurred_at: isoTime(count.at),
      made_by: madeBy,
      created_at: null,
      counts: count.lines.flatMap(({ item }, index) => {
        const line = lines[index];
        const { id, sku, name } = item;
        return line ? [lineOf({ id: Number(id), sku, name }, line)] : [];
      }),
    };
  });

export const createStocktakesService = ({
  strapi,
}: {
  strapi: Core.Strapi;
}): StocktakesService => ({
  async stocktake(input, madeBy) {
    if (input.preview) return previewOf(strapi, input, madeBy);
    return inRetriedTransaction(strapi, async ({ trx }) => {
      const id = await store(strapi, trx, await countFrom(strapi, trx, input), madeBy);
      return getDocument(strapi, trx, 'stocktake', id, toStocktake);
    });
  },

  list: (page) => listDocuments(strapi, 'stocktake', page, toStocktake),

  get: async (id) =>
    getDocument(strapi, await currentExecutor(strapi), 'stocktake', id, toStocktake),

  setTo: (itemId, input, madeBy) =>
    inRetriedTransaction(strapi, async ({ trx }) => {
      await store(strapi, trx, await countOfOne(strapi, trx, itemId, input), madeBy);
    }),

  preview: (itemId, input) =>
    inTransaction(strapi, async ({ trx }) => {
      const count = await countOfOne(strapi, trx, itemId, input);
      const ledger = createLedger(strapi, trx, { simulate: true });
      const place = { item: itemId, location: Number(count.place.id) };
      await ledger.lock([place]);
      const { quantity } = input;
      const moved = { ...place, at: count.at, eventId: null, note: null, reason: null };
      const [line] =
        quantity === undefined
          ? await tryCount(strapi, trx, count)
          : [ledger.move({ ...moved, type: 'adjustment', quantity })];
      if (!line) throw new Error('A change by hand came to nothing.');
      const { effect, quantityAfter, reason } = line;
      const location = summaryOfLocation(count.place);
      return { location, before: quantityAfter - effect, after: quantityAfter, reason };
    }),
});
