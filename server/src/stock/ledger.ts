import type { Knex } from 'knex';
import type { LocationSummary, Movement, PlacedMovement } from '../../../shared/contracts/stock';
import type { App } from '../app';
import type { Db, Tx } from '../database/db';
import { findInChunks, inChunks } from '../database/written-rows';
import type { EventMap } from '../hooks';
import { isoTime } from '../runtime/text';
import { type EventToPublish, getPublisher } from '../webhooks/publish';
import { markChanged } from './catalogue';
import { locationSummary, readLocations } from './locations';
import { lockMappedItems, writeThrough } from './products';
import type { Posting } from './rules/allocation';
import {
  applyCount,
  applyMovement,
  type PostingReason,
  isLatestCount,
  type LevelState,
  type MovementReason,
  type MovementType,
  openLevel,
  STANDING_REASONS,
  type Step,
} from './rules/fold';
import {
  type Big,
  type ItemRow,
  ITEMS_TABLE,
  type LevelRow,
  LEVELS_TABLE,
  LOCATIONS_TABLE,
  type MovementRow,
  MOVEMENTS_TABLE,
} from './tables';

export interface Place {
  item: number;
  location: number;
}

export const placeKey = ({ item, location }: Place): string => `${item}@${location}`;

export const placeOf = (row: Record<'item_id' | 'location_id', Big>): Place => ({
  item: Number(row.item_id),
  location: Number(row.location_id),
});

/** Each place once, always in the same order. */
const distinct = (places: readonly Place[]): Place[] =>
  [...new Map(places.map((place) => [placeKey(place), place])).values()].sort(
    (a, b) => a.item - b.item || a.location - b.location
  );

/** The levels of these places as they are; places without a level are absent. */
export const readLevels = async (db: Db, places: readonly Place[], { lock = false } = {}) => {
  const levels = new Map<string, LevelRow>();
  for (const some of inChunks(distinct(places))) {
    const query = db
      .table(LEVELS_TABLE)
      .select('*')
      .whereIn('item_id', [...new Set(some.map(({ item }) => item))])
      .whereIn('location_id', [...new Set(some.map(({ location }) => location))])
      .orderBy(['item_id', 'location_id']);
    for (const row of (await (lock ? query.forUpdate() : query)) as LevelRow[]) {
      levels.set(placeKey(placeOf(row)), row);
    }
  }
  return levels;
};

export type LevelOpening = Place & { opening: number };

/** Makes levels with what they start from; one that is there already stays as it is. */
export const openLevels = async (tx: Tx, openings: readonly LevelOpening[]): Promise<void> => {
  const updatedAt = Date.now();
  const rows = openings.map(({ item, location, opening }) => ({
    item_id: item,
    location_id: location,
    opening,
    quantity: opening,
    updated_at: updatedAt,
  }));
  await tx.insert(LEVELS_TABLE, rows, { unique: ['item_id', 'location_id'], then: 'ignore' });
};

/** Locks these places by item and location, which prevents deadlocks; creates missing levels. Returns by `placeKey`. */
export const lockLevels = async (tx: Tx, places: readonly Place[]) => {
  const locked = await readLevels(tx, places, { lock: true });
  const missing = distinct(places).filter((place) => !locked.has(placeKey(place)));
  if (missing.length === 0) return locked;
  const openings = missing.map((place) => ({ ...place, opening: 0 }));
  await openLevels(tx, openings);
  return readLevels(tx, places, { lock: true });
};

/** A level whose quantity the transaction has changed. */
export type LevelChange = Place & Record<'levelId' | 'before' | 'after', number>;

/** One change a level, in the order in which the levels first changed; none if it is as before. */
export const mergeChanges = (changes: readonly LevelChange[]): LevelChange[] => {
  const merged = new Map<number, LevelChange>();
  for (const change of changes) {
    const { before } = merged.get(change.levelId) ?? change;
    merged.set(change.levelId, { ...change, before });
  }
  return [...merged.values()].filter(({ before, after }) => before !== after);
};

/** Movements of a level that change it, without counts, and whether or not a count covers them. */
export const moving = (query: Knex.QueryBuilder): Knex.QueryBuilder =>
  query.whereNot({ type: 'count' }).andWhere((any) => {
    any.whereNull('reason').orWhereNotIn('reason', [...STANDING_REASONS]);
  });

const latestCounts = (db: Db, levelId: number) =>
  db
    .table(MOVEMENTS_TABLE)
    .where({ level_id: levelId, type: 'count' })
    .whereNull('undone')
    .orderBy([
      { column: 'at', order: 'desc' },
      { column: 'seq', order: 'desc' },
      { column: 'line', order: 'desc' },
    ])
    .limit(1);

/** The count that a level starts from, as the ledger has it; undefined: the opening quantity. */
export const lastCountOf = async (db: Db, levelId: number): Promise<MovementRow | undefined> => {
  const [last] = (await latestCounts(db, levelId)) as MovementRow[];
  return last;
};

/**
 * `rules/fold.ts` in SQL, so that a million movements cost no memory.
 * @param level locked by the transaction; commits before the lock are seen, on MySQL too
 */
export const foldInDatabase = async (
  db: Db,
  level: Pick<LevelRow, 'id' | 'opening'>
): Promise<LevelState> => {
  const [last] = (await db.latest(latestCounts(db, level.id))) as MovementRow[];
  const moved = moving(db.table(MOVEMENTS_TABLE).where({ level_id: level.id }));
  if (last) moved.andWhere('at', '>', Number(last.at));
  const [sum] = (await db.latest(moved.sum({ moved: 'quantity' }))) as { moved: Big | null }[];
  const after = Number(sum?.moved ?? 0);
  if (!last) return openLevel(Number(level.opening) + after);
  return {
    quantity: Number(last.quantity) + after,
    lastCount: { time: Number(last.at), seq: Number(last.seq), line: Number(last.line) },
  };
};

interface EntryInput extends Place {
  /** Effective time, epoch milliseconds. */
  at: number;
  /** Pieces that the shelf gains; for a count, the counted number. */
  quantity: number;
  /** The POS event it belongs to; null for the owner's own adjustments. */
  eventId: number | null;
  note: string | null;
  /** The transfer or stocktake it belongs to. */
  documentId?: number;
  madeBy?: string | null;
}

export interface CountingInput extends EntryInput {
  line: number;
  /** Orders counts of the very same time; the POS event's id if left out. */
  seq?: number;
}

export interface LedgerLine extends EntryInput {
  type: MovementType;
  effect: number;
  quantityAfter: number;
  reason: MovementReason | null;
  seq: number | null;
  line: number | null;
  /** The SKU of an unknown item, in test mode (items.ts). */
  sku?: string;
}

const columnsOf = ({ quantity, lastCount }: LevelState) => ({
  quantity,
  count_at: lastCount?.time ?? null,
  count_seq: lastCount?.seq ?? null,
  count_line: lastCount?.line ?? null,
});

const seqOf = ({ seq, eventId }: CountingInput): number => seq ?? eventId ?? 0;

/** A level that is locked, and the lines that were added to it since. */
const held = (row: LevelRow | null, opening: number) => {
  const state: LevelState = { quantity: row ? Number(row.quantity) : opening, lastCount: null };
  if (row && row.count_at !== null) {
    const { count_at: time, count_seq: seq, count_line: line } = row;
    state.lastCount = { time: Number(time), seq: Number(seq), line: Number(line) };
  }
  const counted = row?.accepted_count_at ?? null;
  return {
    row,
    before: state.quantity,
    state,
    acceptedCountAt: counted === null ? null : Number(counted),
    lines: [] as LedgerLine[],
  };
};

type Held = ReturnType<typeof held>;

const sumPending = (level: Held, time: number): number =>
  level.lines.reduce(
    (sum, line) => (line.type !== 'count' && line.at > time ? sum + line.effect : sum),
    0
  );

/**
 * The only writer of levels and movements (docs/contract-pos.md#the-rule-of-stock); `counts.ts` marks accepted counts for it.
 * Entries are computed in memory under level locks; `flush` writes them together.
 * @param simulate computes but writes nothing, for test mode: neither locks nor creates levels
 * @param openingOf the start of a missing level that is not created
 */
export class Ledger {
  private readonly levels = new Map<string, Held>();
  private readonly pending: LedgerLine[] = [];
  /** Items whose product was compared with the ledger in this transaction. */
  private readonly compared = new Set<number>();

  constructor(
    private readonly app: App,
    private readonly tx: Tx,
    private readonly options: {
      simulate?: boolean;
      openingOf?: ((place: Place) => number) | null;
    } = {}
  ) {}

  /** Locks levels, which writing requires. Product changes of the site past the ledger become adjustments here. */
  async lock(places: readonly Place[]): Promise<void> {
    const wanted = places.filter((place) => !this.levels.has(placeKey(place)));
    if (wanted.length === 0) return;
    const fresh = wanted.map(({ item }) => item).filter((item) => !this.compared.has(item));
    const { simulate, openingOf } = this.options;
    const { stock } = this.app.options;
    const isMapped = !simulate && stock?.quantity;
    const found = isMapped ? await lockMappedItems(this.tx, this.app, fresh) : [];
    const drifts = stock?.onProductWrite === 'refuse' ? [] : found;
    for (const item of fresh) this.compared.add(item);
    const all = [...wanted, ...drifts.filter((place) => !this.levels.has(placeKey(place)))];
    const rows = await (simulate ? readLevels : lockLevels)(this.tx, all);
    for (const place of all) {
      const key = placeKey(place);
      if (this.levels.has(key)) continue;
      this.levels.set(key, held(rows.get(key) ?? null, openingOf?.(place) ?? 0));
    }
    for (const { item, location, quantity } of drifts) {
      const counted = this.at({ item, location }).state.lastCount?.time ?? 0;
      this.move({
        item,
        location,
        quantity,
        type: 'adjustment',
        // A count may be dated ahead by some minutes: it has not seen what is found now.
        at: Math.max(Date.now(), counted + 1),
        reason: 'product',
        eventId: null,
        note: null,
      });
    }
  }

  move({
    reason,
    ...input
  }: EntryInput & {
    type: Exclude<MovementType, 'count'>;
    reason: PostingReason | null;
  }): LedgerLine {
    const level = this.at(input);
    const { at: time, quantity } = input;
    const step = applyMovement(level.state, { time, quantity, reason });
    return this.append(level, step, { ...input, seq: null, line: null });
  }

  /** All lines of one count, which share its time. */
  async count(input: readonly CountingInput[]): Promise<LedgerLine[]> {
    const time = input[0]?.at ?? 0;
    const fresh = input.filter((one) =>
      isLatestCount(this.at(one).state, { time, seq: seqOf(one), line: one.line })
    );
    const ids = fresh.flatMap((one) => this.at(one).row?.id ?? []);
    const sums = await this.movedAfter(ids, time);
    return input.map((one) => {
      const level = this.at(one);
      const { quantity, line } = one;
      const seq = seqOf(one);
      const after = (sums.get(Number(level.row?.id)) ?? 0) + sumPending(level, time);
      const step = applyCount(level.state, { time, seq, line, quantity }, after);
      level.acceptedCountAt = Math.max(level.acceptedCountAt ?? time, time);
      return this.append(level, step, { ...one, type: 'count', seq });
    });
  }

  /** Writes all lines and updates mapped products. The caller publishes (`stockChangeEvents`) in this transaction. */
  async flush(): Promise<LevelChange[]> {
    if (this.options.simulate || this.pending.length === 0) return [];
    const touched = [...this.levels.values()].filter(({ lines }) => lines.length > 0);
    await this.write(touched);
    const changes = touched.flatMap(({ row, before, state }): LevelChange[] => {
      if (!row || before === state.quantity) return [];
      return [{ ...placeOf(row), levelId: row.id, before, after: state.quantity }];
    });
    this.pending.length = 0;
    const items = changes.map(({ item }) => item);
    await markChanged(this.tx, items);
    if (this.app.options.stock?.quantity) {
      // Unchanged sums, too: their product may have had another number.
      const moved = touched.map(({ row }) => Number(row?.item_id));
      await writeThrough(this.tx, this.app, moved);
    }
    return changes;
  }

  private at(place: Place): Held {
    const level = this.levels.get(placeKey(place));
    if (!level) throw new Error(`The level ${placeKey(place)} is not locked.`);
    return level;
  }

  private append(
    level: Held,
    step: Step,
    base: Omit<LedgerLine, 'effect' | 'quantityAfter' | 'reason'>
  ): LedgerLine {
    const { effect, reason } = step;
    const line: LedgerLine = { ...base, effect, reason, quantityAfter: step.level.quantity };
    level.state = step.level;
    level.lines.push(line);
    this.pending.push(line);
    return line;
  }

  /** By level id: what was moved later than `time`, in the database. */
  private async movedAfter(ids: readonly number[], time: number): Promise<Map<number, number>> {
    // Sums quantities: a covered movement has no effect, but moves again once the count is undone.
    const rows = await findInChunks<{ level_id: number; moved: Big | null }>(ids, (some) => {
      const query = moving(this.tx.table(MOVEMENTS_TABLE))
        .select('level_id')
        .sum({ moved: 'quantity' })
        .whereIn('level_id', some)
        .where('at', '>', time)
        .groupBy('level_id');
      return this.options.simulate ? query : this.tx.latest(query);
    });
    return new Map(rows.map((row) => [Number(row.level_id), Number(row.moved ?? 0)]));
  }

  private async write(touched: readonly Held[]): Promise<void> {
    const at = Date.now();
    const lines = this.pending.map((line) => ({
      level_id: this.at(line).row?.id ?? null,
      type: line.type,
      at: line.at,
      seq: line.seq,
      line: line.line,
      quantity: line.quantity,
      effect: line.effect,
      quantity_after: line.quantityAfter,
      reason: line.reason,
      note: line.note,
      event_id: line.eventId,
      document_id: line.documentId ?? null,
      made_by: line.madeBy ?? null,
      created_at: at,
    }));
    await this.tx.insert(MOVEMENTS_TABLE, lines);
    const levels = touched.map(({ row, state, acceptedCountAt }) => ({
      id: Number(row?.id),
      set: { ...columnsOf(state), accepted_count_at: acceptedCountAt, updated_at: at },
    }));
    await this.tx.updateRows(LEVELS_TABLE, levels);
  }
}

/** The quantities of records that are in the ledger, by record, item and location. */
export const postedOf = async (db: Db, events: readonly number[]): Promise<Posting[]> => {
  const rows = await findInChunks<Record<'event_id' | 'item_id' | 'location_id' | 'quantity', Big>>(
    events,
    (some) =>
      db
        .table(`${MOVEMENTS_TABLE} as m`)
        .join(`${LEVELS_TABLE} as l`, 'l.id', 'm.level_id')
        .select('m.event_id', 'l.item_id', 'l.location_id')
        .sum({ quantity: 'm.quantity' })
        .whereIn('m.event_id', some)
        .groupBy('m.event_id', 'l.item_id', 'l.location_id')
  );
  return rows.map((row) => ({
    refund: Number(row.event_id),
    ...placeOf(row),
    quantity: Number(row.quantity),
  }));
};

/** Sets levels that are locked to what their movements come to. */
const writeFolded = async (tx: Tx, level: LevelRow, state: LevelState): Promise<LevelChange[]> => {
  const { quantity } = state;
  await tx
    .table(LEVELS_TABLE)
    .where({ id: level.id })
    .update({ ...columnsOf(state), updated_at: Date.now() });
  const before = Number(level.quantity);
  if (quantity === before) return [];
  return [{ ...placeOf(level), levelId: Number(level.id), before, after: quantity }];
};

/** Updates the catalogue and mapped products after levels were corrected. */
const follow = async (tx: Tx, app: App, changes: readonly LevelChange[]): Promise<void> => {
  const items = changes.map(({ item }) => item);
  await markChanged(tx, items);
  await writeThrough(tx, app, items);
};

type CountToUndo = Place & Record<'event' | 'line', number>;

const undoOnLevel = async (tx: Tx, level: LevelRow, counts: readonly CountToUndo[]) => {
  const movements = () => tx.table(MOVEMENTS_TABLE).where({ level_id: level.id });
  const undone: MovementRow[] = [];
  for (const { event, line } of counts) {
    const rows = () =>
      movements().where({ type: 'count', event_id: event, line }).whereNull('undone');
    undone.push(...((await tx.latest(rows().select('*'))) as MovementRow[]));
    await rows().update({ undone: true });
  }
  const folded = await foldInDatabase(tx, level);
  const changes = await writeFolded(tx, level, folded);
  const [first] = undone;
  if (first) {
    await tx.table(MOVEMENTS_TABLE).insert({
      level_id: level.id,
      type: 'count',
      at: Number(first.at),
      seq: first.seq,
      line: first.line,
      quantity: 0,
      effect: folded.quantity - Number(level.quantity),
      quantity_after: folded.quantity,
      reason: 'mapping_undone',
      note: first.note,
      event_id: first.event_id,
      undone: true,
      created_at: Date.now(),
    });
  }
  return changes;
};

/** Undoes counts: they stay, marked, and start no level. A line of its own has the change, so effects still add up. */
export const undoCounts = async (tx: Tx, app: App, counts: readonly CountToUndo[]) => {
  if (counts.length === 0) return [];
  // Numbers that the site wrote into their products meanwhile are neither lost nor counted.
  const ledger = new Ledger(app, tx);
  await ledger.lock(counts);
  const changes = await ledger.flush();
  for (const [key, level] of await lockLevels(tx, counts)) {
    const own = counts.filter((one) => placeKey(one) === key);
    if (own.length > 0) changes.push(...(await undoOnLevel(tx, level, own)));
  }
  await follow(tx, app, changes);
  return mergeChanges(changes);
};

/** Sets levels right that are not what the ledger has of them; they are locked. */
export const repairLevels = async (
  tx: Tx,
  app: App,
  findings: readonly { level: LevelRow; should: LevelState }[]
): Promise<void> => {
  const changes: LevelChange[] = [];
  for (const { level, should } of findings) changes.push(...(await writeFolded(tx, level, should)));
  await follow(tx, app, changes);
};

/** Sets a level's own low mark; null: it goes by its item's. */
export const setLowMark = async (tx: Tx, id: number, lowAt: number | null): Promise<void> => {
  await tx.table(LEVELS_TABLE).where({ id }).update({ low_at: lowAt });
};

/** A record's movements, in the order in which they were written. */
export const movementsOfEvent = async (db: Db, event: number): Promise<PlacedMovement[]> => {
  const rows = (await db
    .table(`${MOVEMENTS_TABLE} as m`)
    .join(`${LEVELS_TABLE} as l`, 'l.id', 'm.level_id')
    .join(`${ITEMS_TABLE} as i`, 'i.id', 'l.item_id')
    .join(`${LOCATIONS_TABLE} as p`, 'p.id', 'l.location_id')
    .select('m.*', 'i.sku', 'l.location_id', 'p.code as location_code', 'p.name as location_name')
    .where('m.event_id', event)
    .orderBy('m.id')) as (MovementRow & Parameters<typeof summaryOf>[0] & { sku: string })[];
  return rows.map((row) => ({ ...toMovement(row), sku: row.sku, location: summaryOf(row) }));
};

const GROUP = 'Point of sale';

const integer = { type: 'integer' };
const string = { type: 'string' };
const stringOrNull = { type: ['string', 'null'] };

const levelSchema = {
  type: 'object',
  required: ['item', 'location', 'quantity', 'previous_quantity'],
  properties: {
    item: {
      type: 'object',
      properties: { id: integer, sku: string, gtin: stringOrNull, name: stringOrNull },
    },
    location: { type: 'object', properties: { id: integer, code: string, name: string } },
    quantity: integer,
    previous_quantity: integer,
    low_at: integer,
  },
};

const example = {
  item: { id: 7, sku: 'MUG-BLUE', gtin: '4006381333931', name: 'Blue mug' },
  location: { id: 1, code: 'main', name: 'Main store' },
  quantity: 12,
  previous_quantity: 14,
};

const STOCK_EVENTS: EventMap = {
  'stock.changed': {
    label: 'Stock changed',
    group: GROUP,
    description: 'A stock level changed. Movements that are applied together send one event.',
    schema: levelSchema,
    example,
  },
  'stock.low': {
    label: 'Stock low',
    group: GROUP,
    description:
      'A stock level fell to the item’s threshold or below it. The default threshold is 0.',
    schema: levelSchema,
    example: { ...example, quantity: 0, previous_quantity: 2, low_at: 0 },
  },
};

export const STOCK_EVENT_NAMES = Object.keys(STOCK_EVENTS);

/** Declares events in the catalogue, as any other plugin would. */
export const declareEvents = (app: App, declared: EventMap): void => {
  app.hooks.get('service_crm_webhook_events').register(function declarePointOfSale(map) {
    return { ...map, ...declared };
  });
};

export const declareStockEvents = (app: App): void => declareEvents(app, STOCK_EVENTS);

/** A transaction's stock changes as events with subscribers; they are published with the transaction's other events. */
export const stockChangeEvents = async (tx: Tx, app: App, changes: readonly LevelChange[]) => {
  if (changes.length === 0) return [];
  const heard = await getPublisher(app).subscribed(STOCK_EVENT_NAMES);
  if (heard.size === 0) return [];
  const byId = <Row extends { id: number }>(rows: readonly Row[]) =>
    new Map(rows.map((row) => [Number(row.id), row]));
  const itemIds = changes.map(({ item }) => item);
  const items = byId(
    await findInChunks<ItemRow>(itemIds, (some) => tx.table(ITEMS_TABLE).whereIn('id', some))
  );
  const levelIds = changes.map(({ levelId }) => levelId);
  const marked = byId(
    await findInChunks<LevelRow>(levelIds, (some) =>
      tx.table(LEVELS_TABLE).whereNotNull('low_at').whereIn('id', some)
    )
  );
  const locations = await readLocations(tx);
  return changes.flatMap(({ item: itemId, location: locationId, levelId, before, after }) => {
    const item = items.get(itemId);
    const location = locations.get(locationId);
    if (!item || !location) return [];
    const data = {
      item: { id: Number(item.id), sku: item.sku, gtin: item.gtin, name: item.name },
      location: locationSummary(locationId, location),
      quantity: after,
      previous_quantity: before,
    };
    const lowAt = Number(marked.get(Number(levelId))?.low_at ?? item.low_at ?? 0);
    const events: EventToPublish[] = [];
    const subject = { type: 'item', id: String(item.id), label: item.sku } as const;
    if (heard.has('stock.changed')) events.push({ event: 'stock.changed', data, subject });
    if (heard.has('stock.low') && after <= lowAt && before > lowAt) {
      events.push({ event: 'stock.low', data: { ...data, low_at: lowAt }, subject });
    }
    return events;
  });
};

export const summaryOf = (
  row: Pick<LevelRow, 'location_id'> & Record<'location_code' | 'location_name', string>
): LocationSummary => ({
  id: Number(row.location_id),
  code: row.location_code,
  name: row.location_name,
});

export const toMovement = (row: MovementRow): Movement => ({
  id: Number(row.id),
  level_id: Number(row.level_id),
  type: row.type,
  effective_at: isoTime(Number(row.at)),
  quantity: Number(row.quantity),
  effect: Number(row.effect),
  reason: row.reason,
  quantity_after: Number(row.quantity_after),
  note: row.note,
  event_id: row.event_id === null ? null : Number(row.event_id),
  document_id: row.document_id === null ? null : Number(row.document_id),
  made_by: row.made_by,
  undone: Boolean(row.undone),
  created_at: isoTime(Number(row.created_at)),
});
