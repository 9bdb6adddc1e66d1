import { randomUUID } from 'node:crypto';
import type {
  ChangePreview,
  DocumentLine,
  LocationSummary,
  Stocktake,
  StocktakeLine,
  Transfer,
} from '../../../shared/contracts/stock';
import type { Page } from '../../../shared/contracts/webhooks';
import { firstOrNotFound } from '../database/retry';
import { type PageRequest, readPage } from '../http/pagination';
import { fieldError } from '../http/validation';
import { isoTime } from '../runtime/text';
import { refusal } from '../runtime/refusal';
import { getPublisher } from '../webhooks/publish';
import { type AskedCounting, Ledger, type LedgerLine, stockChangeEvents } from './ledger';
import type { Adjust, StocktakeInput, TransferInput } from './inputs';
import { itemFromInput } from './items';
import { locationFromInput } from './locations';
import {
  type Big,
  digestOf,
  type DocumentRow,
  DOCUMENTS_TABLE,
  type ItemRow,
  ITEMS_TABLE,
  LEVELS_TABLE,
  type LocationRow,
  LOCATIONS_TABLE,
  type MovementRow,
  MOVEMENTS_TABLE,
} from './tables';
import type { App } from '../app';
import type { Db, Tx } from '../database/db';

/** Transfers and stocktakes: what is written by hand and is more than one line of the ledger. */

type Kind = DocumentRow['kind'];

/** A line of the ledger beside its item. */
type LineRow = MovementRow & {
  item_id: Big;
  location_id: Big;
  sku: string;
  item_name: string | null;
};

const documentDigest = (kind: Kind, externalId: string): string =>
  digestOf(`${kind}:${externalId}`);

/** The time that a client gives, or now. @throws ValidationError (400) where it lies ahead */
export const timeOf = (occurredAt: number | undefined): number => {
  const now = Date.now();
  if (occurredAt !== undefined && occurredAt > now) {
    throw fieldError('occurred_at', refusal('must not lie in the future', 'future'));
  }
  return occurredAt ?? now;
};

/** A line as a client asks for it. */
interface AskedLine {
  item: ItemRow;
  quantity: number;
  note: string | null;
}

/** @throws ValidationError (400) that names the item there is none of */
const askedLines = async (
  tx: Tx,
  asked: readonly { item: number | string; quantity: number; reason?: string }[],
  field: string
): Promise<AskedLine[]> => {
  const lines: AskedLine[] = [];
  for (const [index, { item, quantity, reason }] of asked.entries()) {
    const row = await itemFromInput(tx, item, `${field}.${index}.item`);
    lines.push({ item: row, quantity, note: reason ?? null });
  }
  return lines;
};

const summaryOfLocation = (row: LocationRow | undefined): LocationSummary => ({
  id: Number(row?.id ?? 0),
  code: row?.code ?? '',
  name: row?.name ?? '',
});

const itemOfLine = (line: LineRow): DocumentLine['item'] => ({
  id: Number(line.item_id),
  sku: line.sku,
  name: line.item_name,
});

type NewDocument = Pick<
  DocumentRow,
  'kind' | 'external_id' | 'at' | 'location_id' | 'to_location_id' | 'made_by'
>;

/** Inserts a document. @returns its id; fails at a unique index where its external id is taken */
const insertDocument = async (tx: Tx, values: NewDocument): Promise<number> => {
  // Found again by its digest: not every database gives the id of a new row.
  const digest =
    values.external_id === null
      ? digestOf(`${values.kind}#${randomUUID()}`)
      : documentDigest(values.kind, values.external_id);
  const rows = () => tx.table(DOCUMENTS_TABLE);
  await rows().insert({ ...values, external_digest: digest, created_at: Date.now() });
  const row = (await rows().where({ external_digest: digest }).first()) as DocumentRow;
  return Number(row.id);
};

/** What a document is shown as, from its row, its lines and all locations. */
type DocumentShape<T> = (
  row: DocumentRow,
  lines: readonly LineRow[],
  locations: ReadonlyMap<number, LocationRow>
) => T;

const linesOf = async (db: Db, ids: readonly number[]): Promise<LineRow[]> => {
  return (await db
    .table(`${MOVEMENTS_TABLE} as m`)
    .join(`${LEVELS_TABLE} as l`, 'l.id', 'm.level_id')
    .join(`${ITEMS_TABLE} as i`, 'i.id', 'l.item_id')
    .select('m.*', 'l.item_id', 'l.location_id', 'i.sku', 'i.name as item_name')
    .whereIn('m.document_id', [...ids])
    .orderBy('m.id')) as LineRow[];
};

const shaped = async <T>(
  db: Db,
  rows: readonly DocumentRow[],
  shape: DocumentShape<T>
): Promise<T[]> => {
  const ids = rows.map(({ id }) => Number(id));
  const lines = await linesOf(db, ids);
  const places = (await db.table(LOCATIONS_TABLE).select('*')) as LocationRow[];
  const locations = new Map(places.map((row) => [Number(row.id), row]));
  return rows.map((row) =>
    shape(
      row,
      lines.filter(({ document_id: id }) => Number(id) === Number(row.id)),
      locations
    )
  );
};

/** A page of documents, newest first. */
const listDocuments = async <T>(
  app: App,
  kind: Kind,
  request: PageRequest,
  shape: DocumentShape<T>
): Promise<Page<T>> => {
  const db = await app.db.current();
  const query = db.table(DOCUMENTS_TABLE).select('*').where({ kind }).orderBy('id', 'desc');
  const { rows, meta } = await readPage<DocumentRow>(db, query, request);
  return { data: await shaped(db, rows, shape), meta };
};

/** @throws NotFoundError (404) */
const getDocument = async <T>(
  db: Db,
  kind: Kind,
  id: number,
  shape: DocumentShape<T>
): Promise<T> => {
  const what = kind === 'transfer' ? 'Transfer' : 'Stocktake';
  const query = db.table(DOCUMENTS_TABLE).where({ kind, id });
  const row = await firstOrNotFound<DocumentRow>(query, what);
  const [document] = await shaped(db, [row], shape);
  return document as T;
};

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
const store = async (tx: Tx, app: App, count: Count, madeBy: string | null): Promise<number> => {
  const document = await insertDocument(tx, {
    kind: 'stocktake',
    external_id: null,
    at: count.at,
    location_id: Number(count.place.id),
    to_location_id: null,
    made_by: madeBy,
  });
  const asked = askedOf(count, document, madeBy);
  const ledger = new Ledger(app, tx);
  await ledger.lock(asked);
  await ledger.count(asked);
  const changes = await ledger.flush();
  await getPublisher(app).publish(await stockChangeEvents(tx, app, changes));
  return document;
};

const tryCount = async (tx: Tx, app: App, count: Count): Promise<LedgerLine[]> => {
  const asked = askedOf(count, NEXT_DOCUMENT, null);
  const ledger = new Ledger(app, tx, { simulate: true });
  await ledger.lock(asked);
  return ledger.count(asked);
};

const countFrom = async (
  tx: Tx,
  { location, occurred_at: occurredAt, counts }: StocktakeInput
): Promise<Count> => {
  const at = timeOf(occurredAt);
  const place = await locationFromInput(tx, location, 'location');
  const lines = await askedLines(tx, counts, 'counts');
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
  tx: Tx,
  itemId: number,
  { location, occurred_at: occurredAt, reason, counted = 0 }: Adjust
): Promise<Count> => {
  const query = tx.table(ITEMS_TABLE).where({ id: itemId });
  const item = await firstOrNotFound<ItemRow>(query, 'Item');
  const at = timeOf(occurredAt);
  const place = await locationFromInput(tx, location, 'location');
  return { place, at, lines: [{ item, quantity: counted, note: reason ?? null }] };
};

const previewOf = (app: App, input: StocktakeInput, madeBy: string | null): Promise<Stocktake> =>
  app.db.transaction(async (tx) => {
    const count = await countFrom(tx, input);
    const lines = await tryCount(tx, app, count);
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

/** Counts by hand; docs/tills.md#counting-by-hand. */
export class StocktakesService {
  constructor(private readonly app: App) {}

  /**
   * One count of many items, dated when counting began. A preview says what each level is and would
   * be, and stores nothing.
   * @throws ValidationError (400) that names the field
   */
  async stocktake(input: StocktakeInput, madeBy: string | null): Promise<Stocktake> {
    const { app } = this;
    if (input.preview) return previewOf(app, input, madeBy);
    return app.db.retrying(async (tx) => {
      const id = await store(tx, app, await countFrom(tx, input), madeBy);
      return getDocument(tx, 'stocktake', id, toStocktake);
    });
  }

  /** Newest first. */
  list(page: PageRequest): Promise<Page<Stocktake>> {
    return listDocuments(this.app, 'stocktake', page, toStocktake);
  }

  /** @throws NotFoundError (404) */
  async get(id: number): Promise<Stocktake> {
    return getDocument(await this.app.db.current(), 'stocktake', id, toStocktake);
  }

  /** Sets one level to what was counted, as a stocktake of one item. @throws NotFoundError (404) */
  setTo(itemId: number, input: Adjust, madeBy: string | null): Promise<void> {
    return this.app.db.retrying(async (tx) => {
      await store(tx, this.app, await countOfOne(tx, itemId, input), madeBy);
    });
  }

  /** What a level is, and would be after a change by hand. @throws NotFoundError (404) */
  preview(itemId: number, input: Adjust): Promise<ChangePreview> {
    const { app } = this;
    return app.db.transaction(async (tx) => {
      const count = await countOfOne(tx, itemId, input);
      const ledger = new Ledger(app, tx, { simulate: true });
      const place = { item: itemId, location: Number(count.place.id) };
      await ledger.lock([place]);
      const { quantity } = input;
      const moved = { ...place, at: count.at, eventId: null, note: null, reason: null };
      const [line] =
        quantity === undefined
          ? await tryCount(tx, app, count)
          : [ledger.move({ ...moved, type: 'adjustment', quantity })];
      if (!line) throw new Error('A change by hand came to nothing.');
      const { effect, quantityAfter, reason } = line;
      const location = summaryOfLocation(count.place);
      return { location, before: quantityAfter - effect, after: quantityAfter, reason };
    });
  }
}

const movementOf = (line: LineRow): Transfer['lines'][number]['movements'][number] => ({
  id: Number(line.id),
  level_id: Number(line.level_id),
  quantity: Number(line.quantity),
  effect: Number(line.effect),
  reason: line.reason,
});

const toTransfer: DocumentShape<Transfer> = (row, lines, locations) => {
  const out = lines.filter(({ quantity }) => Number(quantity) < 0);
  const arrived = lines.filter(({ quantity }) => Number(quantity) > 0);
  return {
    id: Number(row.id),
    external_id: row.external_id,
    from: summaryOfLocation(locations.get(Number(row.location_id))),
    to: summaryOfLocation(locations.get(Number(row.to_location_id))),
    occurred_at: isoTime(Number(row.at)),
    made_by: row.made_by,
    created_at: isoTime(Number(row.created_at)),
    lines: out.map((line, index) => {
      const other = arrived[index];
      return {
        item: itemOfLine(line),
        quantity: -Number(line.quantity),
        movements: [line, ...(other ? [other] : [])].map(movementOf),
      };
    }),
  };
};

interface Move {
  document: number;
  from: LocationRow;
  to: LocationRow;
  at: number;
  lines: readonly AskedLine[];
  madeBy: string | null;
}

const write = async (
  tx: Tx,
  app: App,
  { document, from, to, at, lines, madeBy }: Move
): Promise<void> => {
  const ledger = new Ledger(app, tx);
  const moves = lines.flatMap(({ item, quantity, note }) =>
    [
      { location: Number(from.id), quantity: -quantity },
      { location: Number(to.id), quantity },
    ].map((side) => ({ ...side, item: Number(item.id), note }))
  );
  await ledger.lock(moves);
  const base = { type: 'transfer', at, reason: null, eventId: null } as const;
  for (const move of moves) ledger.move({ ...base, ...move, documentId: document, madeBy });
  const changes = await ledger.flush();
  await getPublisher(app).publish(await stockChangeEvents(tx, app, changes));
};

const knownTransfer = async (
  tx: Tx,
  externalId: string | null
): Promise<DocumentRow | undefined> => {
  if (externalId === null) return undefined;
  return (await tx
    .table(DOCUMENTS_TABLE)
    .where({ external_digest: documentDigest('transfer', externalId) })
    .first()) as DocumentRow | undefined;
};

/** Stock that goes from one location to another; docs/tills.md#moving-stock. */
export class StockTransfersService {
  constructor(private readonly app: App) {}

  /**
   * Takes from one location and gives to the other, both in one transaction, once for each
   * `external_id`: the same again is answered with what is there, as `duplicate`.
   * @throws ValidationError (400) that names the field
   */
  transfer(input: TransferInput, madeBy: string | null): Promise<Transfer> {
    return this.app.db.unique(async (tx) => {
      const externalId = input.external_id ?? null;
      const read = (id: number) => getDocument(tx, 'transfer', id, toTransfer);
      const known = await knownTransfer(tx, externalId);
      if (known) return { ...(await read(Number(known.id))), duplicate: true };
      const at = timeOf(input.occurred_at);
      const from = await locationFromInput(tx, input.from, 'from');
      const to = await locationFromInput(tx, input.to, 'to');
      if (Number(from.id) === Number(to.id)) {
        throw fieldError('to', refusal('must be another location than from', 'same_location'));
      }
      const lines = await askedLines(tx, input.lines, 'lines');
      const document = await insertDocument(tx, {
        kind: 'transfer',
        external_id: externalId,
        at,
        location_id: Number(from.id),
        to_location_id: Number(to.id),
        made_by: madeBy,
      });
      await write(tx, this.app, { document, from, to, at, lines, madeBy });
      return { ...(await read(document)), duplicate: false };
    });
  }

  /** Newest first. */
  list(page: PageRequest): Promise<Page<Transfer>> {
    return listDocuments(this.app, 'transfer', page, toTransfer);
  }

  /** @throws NotFoundError (404) */
  async get(id: number): Promise<Transfer> {
    return getDocument(await this.app.db.current(), 'transfer', id, toTransfer);
  }
}
