import { randomUUID } from 'node:crypto';
import type { Knex } from 'knex';
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
import { digestOf, isoTime } from '../runtime/text';
import { refusal } from '../runtime/refusal';
import { getPublisher } from '../webhooks/publish';
import { Ledger, type LedgerLine, stockChangeEvents } from './ledger';
import type { Adjust, StocktakeInput, TransferInput } from './inputs';
import { itemFromInput } from './items';
import { locationFromInput, locationSummary, readLocations } from './locations';
import {
  type Big,
  type DocumentRow,
  DOCUMENTS_TABLE,
  type ItemRow,
  ITEMS_TABLE,
  LEVELS_TABLE,
  type LocationRow,
  type MovementRow,
  MOVEMENTS_TABLE,
} from './tables';
import type { App } from '../app';
import type { Db, Tx } from '../database/db';

/** Transfers and stocktakes: what is written by hand and is more than one line of the ledger. */

/** A location by the id that a document's row has. */
type LocationOf = (id: Big | null) => LocationSummary;
type LineRow = MovementRow & { item_id: Big; sku: string; item_name: string | null };

/** The time that a client gives, or now. @throws ValidationError (400) if it is in the future */
const timeOf = (occurredAt: number | undefined): number => {
  const now = Date.now();
  if (occurredAt !== undefined && occurredAt > now) {
    throw fieldError('occurred_at', refusal('must not lie in the future', 'future'));
  }
  return occurredAt ?? now;
};

export const writeAndPublish = async (tx: Tx, app: App, ledger: Ledger): Promise<void> => {
  const changes = await ledger.flush();
  await getPublisher(app).publish(await stockChangeEvents(tx, app, changes));
};

interface LineInput {
  item: ItemRow;
  quantity: number;
  note: string | null;
}

/** @throws ValidationError (400) that names the item there is none of */
const readLines = async (
  tx: Tx,
  inputs: readonly { item: number | string; quantity: number; reason?: string }[],
  field: string
): Promise<LineInput[]> => {
  const lines: LineInput[] = [];
  for (const [index, { item, quantity, reason }] of inputs.entries()) {
    const row = await itemFromInput(tx, item, `${field}.${index}.item`);
    lines.push({ item: row, quantity, note: reason ?? null });
  }
  return lines;
};

const itemOfLine = (line: LineRow): DocumentLine['item'] => ({
  id: Number(line.item_id),
  sku: line.sku,
  name: line.item_name,
});

const countedLine = (
  item: DocumentLine['item'],
  { quantity, effect, reason }: Pick<LineRow, 'quantity' | 'effect' | 'reason'>,
  after: number
): StocktakeLine => {
  return { item, counted: Number(quantity), before: after - Number(effect), after, reason };
};

type NewDocument = Pick<DocumentRow, 'at' | 'location_id' | 'made_by'> &
  Partial<Pick<DocumentRow, 'external_id' | 'to_location_id'>>;

/** Documents of one kind, each with its lines of the ledger. */
abstract class Documents<Shown> {
  protected abstract readonly kind: DocumentRow['kind'];
  protected abstract readonly name: string;

  constructor(protected readonly app: App) {}

  /** Newest first. */
  async list(page: PageRequest): Promise<Page<Shown>> {
    const db = await this.app.db.current();
    const query = this.rows(db).select('*').orderBy('id', 'desc');
    const { rows, meta } = await readPage<DocumentRow>(db, query, page);
    return { data: await this.shown(db, rows), meta };
  }

  /** @throws NotFoundError (404) */
  async get(id: number): Promise<Shown> {
    const db = await this.app.db.current();
    const row = await firstOrNotFound<DocumentRow>(this.rows(db).where({ id }), this.name);
    const [document] = await this.shown(db, [row]);
    return document as Shown;
  }

  protected abstract shape(
    row: DocumentRow,
    lines: readonly LineRow[],
    locationOf: LocationOf
  ): Shown;

  protected digestOf(externalId: string): string {
    return digestOf(`${this.kind}:${externalId}`);
  }

  protected rows(db: Db): Knex.QueryBuilder {
    return db.table(DOCUMENTS_TABLE).where({ kind: this.kind });
  }

  /** Inserts a document. @returns its id; fails at a unique index where its external id is taken */
  protected async insert(tx: Tx, { external_id: id = null, ...values }: NewDocument) {
    // Found again by its digest: not every database gives the id of a new row.
    const digest = id === null ? digestOf(`${this.kind}#${randomUUID()}`) : this.digestOf(id);
    const external = { external_id: id, external_digest: digest };
    const made = { kind: this.kind, ...external, ...values, created_at: Date.now() };
    await tx.table(DOCUMENTS_TABLE).insert(made);
    const row = (await this.rows(tx).where({ external_digest: digest }).first()) as DocumentRow;
    return Number(row.id);
  }

  private async shown(db: Db, rows: readonly DocumentRow[]): Promise<Shown[]> {
    const ids = rows.map(({ id }) => Number(id));
    const lines: LineRow[] = await db
      .table(`${MOVEMENTS_TABLE} as m`)
      .join(`${LEVELS_TABLE} as l`, 'l.id', 'm.level_id')
      .join(`${ITEMS_TABLE} as i`, 'i.id', 'l.item_id')
      .select('m.*', 'l.item_id', 'i.sku', 'i.name as item_name')
      .whereIn('m.document_id', ids)
      .orderBy('m.id');
    const locations = await readLocations(db);
    return rows.map((row) =>
      this.shape(
        row,
        lines.filter(({ document_id: id }) => Number(id) === Number(row.id)),
        (id) => locationSummary(Number(id), locations.get(Number(id)))
      )
    );
  }
}

/** Orders manual counts at equal times: after all of tills, whose `seq` is an event id, then in order of creation. */
const BY_HAND = 2_147_483_648;
const NEXT_DOCUMENT = 2_147_483_647;

/** A change at one location: lines that were counted, or one that is adjusted. */
interface Change {
  place: LocationRow;
  at: number;
  lines: readonly LineInput[];
}

const entriesOf = ({ place, at, lines }: Change, madeBy: string | null) =>
  lines.map(({ item, ...line }) => ({
    ...line,
    item: Number(item.id),
    location: Number(place.id),
    at,
    eventId: null,
    madeBy,
  }));

const countIn = async (ledger: Ledger, count: Change, document: number, madeBy: string | null) => {
  const entries = entriesOf(count, madeBy).map((entry, line) => ({
    ...entry,
    line,
    seq: BY_HAND + document,
    documentId: document,
  }));
  await ledger.lock(entries);
  return ledger.count(entries);
};

/** Takes the adjustment of an item into a ledger. @param occurredAt  if left out: when it has its lock */
export const adjustIn = async (
  ledger: Ledger,
  adjustment: Change,
  occurredAt: number | undefined,
  madeBy: string | null
): Promise<LedgerLine[]> => {
  const entries = entriesOf(adjustment, madeBy);
  await ledger.lock(entries);
  // A count that it waited for has not seen it.
  const at = timeOf(occurredAt);
  return entries.map((entry) => ledger.move({ ...entry, at, type: 'adjustment', reason: null }));
};

const countFrom = async (tx: Tx, { location, occurred_at: occurredAt, counts }: StocktakeInput) => {
  const at = timeOf(occurredAt);
  const place = await locationFromInput(tx, location, 'location');
  const lines = await readLines(tx, counts, 'counts');
  const seen = new Set<number>();
  for (const [index, { item }] of lines.entries()) {
    if (seen.has(Number(item.id)))
      throw fieldError(`counts.${index}.item`, refusal('is named twice', 'named_twice'));
    seen.add(Number(item.id));
  }
  return { place, at, lines };
};

/** A change of one item. @throws NotFoundError (404) */
export const changeOfOne = async (
  tx: Tx,
  itemId: number,
  { location, occurred_at: occurredAt, reason, quantity, counted = 0 }: Adjust
): Promise<Change> => {
  const query = tx.table(ITEMS_TABLE).where({ id: itemId });
  const item = await firstOrNotFound<ItemRow>(query, 'Item');
  const at = timeOf(occurredAt);
  const place = await locationFromInput(tx, location, 'location');
  return { place, at, lines: [{ item, quantity: quantity ?? counted, note: reason ?? null }] };
};

/** Counts by hand; docs/shop.md#counts. */
export class StocktakesService extends Documents<Stocktake> {
  protected readonly kind = 'stocktake';
  protected readonly name = 'Stocktake';

  /**
   * One count of many items, dated when counting began. A preview returns current and future levels, and stores
   * nothing.
   * @throws ValidationError (400) that names the field
   */
  async stocktake(input: StocktakeInput, madeBy: string | null): Promise<Stocktake> {
    if (input.preview) return this.previewOf(input, madeBy);
    return this.app.db.retrying(async (tx) =>
      this.get(await this.store(tx, await countFrom(tx, input), madeBy))
    );
  }

  /** Sets one level to what was counted, as a stocktake of one item. @throws NotFoundError (404) */
  setTo(itemId: number, input: Adjust, madeBy: string | null): Promise<void> {
    return this.app.db.retrying(async (tx) => {
      await this.store(tx, await changeOfOne(tx, itemId, input), madeBy);
    });
  }

  /** A level now, and after a change by hand. @throws NotFoundError (404) */
  preview(itemId: number, input: Adjust): Promise<ChangePreview> {
    const { app } = this;
    return app.db.transaction(async (tx) => {
      const change = await changeOfOne(tx, itemId, input);
      const ledger = new Ledger(app, tx, { simulate: true });
      const [line] = (await (input.quantity === undefined
        ? countIn(ledger, change, NEXT_DOCUMENT, null)
        : adjustIn(ledger, change, input.occurred_at, null))) as [LedgerLine];
      const { effect, quantityAfter, reason } = line;
      const location = locationSummary(Number(change.place.id), change.place);
      return { location, before: quantityAfter - effect, after: quantityAfter, reason };
    });
  }

  protected shape(row: DocumentRow, lines: readonly LineRow[], locationOf: LocationOf): Stocktake {
    return {
      id: Number(row.id),
      location: locationOf(row.location_id),
      occurred_at: isoTime(Number(row.at)),
      made_by: row.made_by,
      created_at: isoTime(Number(row.created_at)),
      counts: lines.map((line) => countedLine(itemOfLine(line), line, Number(line.quantity_after))),
    };
  }

  /** Puts a count into the ledger, as a document of its own. @returns the document's id */
  private async store(tx: Tx, count: Change, madeBy: string | null): Promise<number> {
    const document = await this.insert(tx, {
      at: count.at,
      location_id: Number(count.place.id),
      made_by: madeBy,
    });
    const ledger = new Ledger(this.app, tx);
    await countIn(ledger, count, document, madeBy);
    await writeAndPublish(tx, this.app, ledger);
    return document;
  }

  private previewOf(input: StocktakeInput, madeBy: string | null): Promise<Stocktake> {
    return this.app.db.transaction(async (tx) => {
      const count = await countFrom(tx, input);
      const ledger = new Ledger(this.app, tx, { simulate: true });
      const lines = await countIn(ledger, count, NEXT_DOCUMENT, null);
      return {
        id: null,
        location: locationSummary(Number(count.place.id), count.place),
        occurred_at: isoTime(count.at),
        made_by: madeBy,
        created_at: null,
        counts: lines.map((line, index) => {
          const { id, sku, name } = count.lines[index]!.item;
          return countedLine({ id: Number(id), sku, name }, line, line.quantityAfter);
        }),
      };
    });
  }
}

/** Stock that goes from one location to another; docs/shop.md#transfers. */
export class StockTransfersService extends Documents<Transfer> {
  protected readonly kind = 'transfer';
  protected readonly name = 'Transfer';

  /**
   * Moves goods between locations in one transaction, once per `external_id`: a repetition is answered as `duplicate`.
   * @throws ValidationError (400) that names the field
   */
  transfer(input: TransferInput, madeBy: string | null): Promise<Transfer> {
    return this.app.db.unique(async (tx) => {
      const { external_id: externalId = null } = input;
      const known: DocumentRow | undefined =
        externalId &&
        (await this.rows(tx)
          .where({ external_digest: this.digestOf(externalId) })
          .first());
      if (known) return { ...(await this.get(Number(known.id))), duplicate: true };
      const at = timeOf(input.occurred_at);
      const from = Number((await locationFromInput(tx, input.from, 'from')).id);
      const to = Number((await locationFromInput(tx, input.to, 'to')).id);
      if (from === to) {
        throw fieldError('to', refusal('must be another location than from', 'same_location'));
      }
      const lines = await readLines(tx, input.lines, 'lines');
      const document = await this.insert(tx, {
        external_id: externalId,
        at,
        location_id: from,
        to_location_id: to,
        made_by: madeBy,
      });
      const ledger = new Ledger(this.app, tx);
      const moves = lines.flatMap(({ item, quantity, note }) =>
        [
          { location: from, quantity: -quantity },
          { location: to, quantity },
        ].map((side) => ({ ...side, item: Number(item.id), note }))
      );
      await ledger.lock(moves);
      const base = { type: 'transfer', at, reason: null, eventId: null } as const;
      for (const move of moves) ledger.move({ ...base, ...move, documentId: document, madeBy });
      await writeAndPublish(tx, this.app, ledger);
      return { ...(await this.get(document)), duplicate: false };
    });
  }

  protected shape(row: DocumentRow, lines: readonly LineRow[], locationOf: LocationOf): Transfer {
    const out = lines.filter(({ quantity }) => Number(quantity) < 0);
    const arrived = lines.filter(({ quantity }) => Number(quantity) > 0);
    return {
      id: Number(row.id),
      external_id: row.external_id,
      from: locationOf(row.location_id),
      to: locationOf(row.to_location_id),
      occurred_at: isoTime(Number(row.at)),
      made_by: row.made_by,
      created_at: isoTime(Number(row.created_at)),
      lines: out.map((line, index) => ({
        item: itemOfLine(line),
        quantity: -Number(line.quantity),
        movements: [line, arrived[index]]
          .filter((one) => one !== undefined)
          .map(({ id, level_id: level, quantity, effect, reason }) => ({
            id: Number(id),
            level_id: Number(level),
            quantity: Number(quantity),
            effect: Number(effect),
            reason,
          })),
      })),
    };
  }
}
