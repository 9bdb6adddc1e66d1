import type {
  CatalogueAnswer,
  RecordStatus,
  TillMovement,
  Validated,
} from '../../../../shared/contracts/till-answers';
import { withTransientRetry } from '../../database/retry';
import { TimeSlice } from '../../runtime/event-loop';
import { digestOf, isoTime } from '../../runtime/text';
import { namedItems } from '../../stock/items';
import { type LedgerLine, movementsOfEvent } from '../../stock/ledger';
import { type CatalogueQuery, readCatalogue } from '../../stock/catalogue';
import { defaultLocation } from '../../stock/locations';
import { productFieldsText } from '../../stock/products';
import type { CatalogueRequest } from '../rules/envelopes';
import { groupOf, mappedLocations } from '../connections';
import { timesOf, workOut } from '../processing/process';
import { type ProcessingContext, unknownLines } from '../processing/resolve';
import { type EventFlag, stateAfter } from '../rules/records';
import {
  type ConnectionRow,
  flagsOf,
  POS_EVENTS_TABLE,
  type PosEventRow,
  posEventTable,
} from '../tables';
import {
  type Acceptance,
  externalDigest,
  judgeUnlocked,
  type Passed,
  rowOf,
  type Submission,
} from './accept';
import { answerOfAcceptance, hasScope, schemaInvalid } from './wire';
import type { App } from '../../app';
import type { Db, Tx } from '../../database/db';

const rulesOf = (connection: ConnectionRow) => ({
  mapped: mappedLocations(connection),
  withQuantity: hasScope(connection, 'stock:read'),
});

type TellingRules = ReturnType<typeof rulesOf>;
type Line = Pick<LedgerLine, 'location' | 'quantity' | 'effect' | 'quantityAfter'>;

const movementAnswer = (
  sku: string,
  { location, quantity, effect, quantityAfter }: Line,
  { mapped, withQuantity }: TellingRules
): TillMovement => ({
  sku,
  // As the connection names it; null if it has no name for it.
  location_ref: mapped.find((one) => one.location === location)?.ref ?? null,
  quantity,
  effect,
  ...(withQuantity && { quantity_after: quantityAfter }),
});

const movementAnswers = async (db: Db, lines: readonly LedgerLine[], rules: TellingRules) => {
  const ids = lines.map(({ item }) => item);
  const items = await namedItems(db, ids);
  return lines.map((line) =>
    movementAnswer(items.get(line.item)?.sku ?? line.sku ?? '', line, rules)
  );
};

/** An id that no event has yet: of two counts of one time, the later arrival wins. */
const PREVIEW_ID = 2_147_483_647;

const NO_COLUMNS = Object.fromEntries(
  Object.keys(posEventTable.attributes).map((column) => [column, null])
);

type Unknown = Validated['unknown'][number];

const unknownOf = (work: ProcessingContext): Unknown[] => {
  const { locationRef } = work.record;
  const all = [
    ...unknownLines(work).map(({ sku, gtin }): Unknown =>
      sku === null ? { gtin: gtin ?? '' } : { sku }
    ),
    ...(work.locationId === null && locationRef !== null ? [{ location_ref: locationRef }] : []),
  ];
  return [...new Map(all.map((one) => [JSON.stringify(one), one])).values()];
};

const previewOfNew = async (tx: Tx, app: App, passed: Passed): Promise<Validated> => {
  const { connection } = passed.submission;
  const row = { ...NO_COLUMNS, ...rowOf(passed.submission, passed), id: PREVIEW_ID } as PosEventRow;
  const { batch } = await workOut(tx, app, [row], {
    connections: await groupOf(tx, Number(connection.id)),
    times: timesOf(app),
    preview: true,
  });
  const [work] = batch;
  if (!work) throw new Error('The connection of a record is gone.');
  return {
    ok: true,
    state: stateAfter('pending', work.state),
    duplicate: false,
    stale: passed.stale,
    flags: [...(JSON.parse(row.flags) as EventFlag[]), ...work.flags],
    movements: await movementAnswers(tx, work.moved, rulesOf(connection)),
    unknown: unknownOf(work),
  };
};

/** A record whose id is taken changes nothing. */
const previewOfKnown = (submission: Submission, acceptance: Acceptance): Validated => {
  const { body } = answerOfAcceptance(submission.record.kind, acceptance);
  return {
    ok: true,
    state: body.state,
    duplicate: true,
    stale: body.stale ?? [],
    flags: body.payload_mismatch ? ['payload_mismatch'] : [],
    movements: [],
    unknown: [],
  };
};

/**
 * Previews a record's outcome (docs/tills.md#trying-a-record) with the processing code, in a transaction that locks no
 * level and is rolled back. Throws Refusal if the record would not be accepted.
 */
export const previewOf = (app: App, submission: Submission): Promise<Validated> =>
  withTransientRetry(() =>
    app.db.rolledBack(async (tx) => {
      const verdict = await judgeUnlocked(tx, app, submission);
      return 'outcome' in verdict
        ? previewOfKnown(submission, verdict)
        : previewOfNew(tx, app, verdict);
    })
  );

const COLUMNS = [
  'id',
  'kind',
  'external_digest',
  'state',
  'mode',
  'flags',
  'settled_flags',
  'payload_mismatch',
  'received_at',
] as const satisfies readonly (keyof PosEventRow)[];

type Found = Pick<PosEventRow, (typeof COLUMNS)[number]>;

const movementsOf = async (
  db: Db,
  { id, mode }: Pick<Found, 'id' | 'mode'>,
  rules: TellingRules
): Promise<TillMovement[]> => {
  if (mode === 'test') {
    const row: Pick<PosEventRow, 'simulated'> | undefined = await db
      .table(POS_EVENTS_TABLE)
      .where({ id })
      .first('simulated');
    return movementAnswers(db, JSON.parse(row?.simulated ?? '[]') as LedgerLine[], rules);
  }
  const rows = await movementsOfEvent(db, Number(id));
  return rows.map(({ sku, location, quantity, effect, quantity_after: quantityAfter }) =>
    movementAnswer(sku, { location: location.id, quantity, effect, quantityAfter }, rules)
  );
};

/** JSON text of the states of records, in request order; built one by one so as not to block the event loop. */
export const statusText = async (app: App, connection: ConnectionRow, ids: readonly string[]) => {
  const db = await app.db.current();
  const rules = rulesOf(connection);
  const rows = (await db
    .table(POS_EVENTS_TABLE)
    .select(...COLUMNS)
    .where({ connection_id: connection.id })
    .whereIn('external_digest', [...new Set(ids.map(externalDigest))])) as Found[];
  const byDigest = new Map(rows.map((row) => [row.external_digest, row]));

  const statusOf = async (externalId: string): Promise<RecordStatus> => {
    const row = byDigest.get(externalDigest(externalId));
    if (!row) return { external_id: externalId, state: 'unknown' };
    return {
      external_id: externalId,
      event_id: Number(row.id),
      kind: row.kind,
      state: row.state,
      flags: flagsOf(row),
      accepted_at: isoTime(Number(row.received_at)),
      movements: await movementsOf(db, row, rules),
    };
  };

  const texts: string[] = [];
  const slice = new TimeSlice();
  for (const id of ids) {
    if (slice.isOver()) await slice.next();
    texts.push(JSON.stringify(await statusOf(id)));
  }
  return `{"ok":true,"records":[${texts.join(',')}]}`;
};

/** A location as the catalogue names it; the single store has no name for its own. */
interface Shelf {
  ref: string | null;
  location: number;
}

const shelvesOf = async (app: App, connection: ConnectionRow): Promise<Shelf[]> => {
  const mapped = mappedLocations(connection);
  if (mapped.length > 0) return mapped;
  const { id } = await defaultLocation(await app.db.current());
  return [{ ref: null, location: Number(id) }];
};

/** `<number of the last change>.<what the answers were made of><the epoch of the number>` */
const CURSOR = /^(\d{1,15})\.([0-9a-f]{8})([0-9a-f]{8})$/;

/** Cursors of other locations, or of other fields of the site's products, start over. */
const originOf = (app: App, id: number, shelves: readonly Shelf[]): string =>
  digestOf(JSON.stringify([id, shelves, productFieldsText(app)])).slice(0, 8);

const readCursor = (cursor: string | null, origin: string): CatalogueQuery['after'] => {
  if (cursor === null) return null;
  const [, number, made, epoch] = CURSOR.exec(cursor) ?? [];
  if (number === undefined || epoch === undefined) {
    const message = 'cursor must be the unchanged cursor of a previous answer, or be left out';
    throw schemaInvalid('catalogue', { field: 'cursor', message });
  }
  return made === origin ? { number: Number(number), epoch } : null;
};

/** Entries of stock in one answer: what a connection of hundreds of locations gets has fewer items. */
const ENTRIES = 20_000;

/** A page of the catalogue (docs/tills.md#the-catalogue). @throws Refusal if the cursor is none */
export const answerCatalogue = async (
  app: App,
  connection: ConnectionRow,
  { cursor, limit }: CatalogueRequest
): Promise<CatalogueAnswer> => {
  const shelves = await shelvesOf(app, connection);
  const origin = originOf(app, Number(connection.id), shelves);
  const page = await readCatalogue(app, {
    after: readCursor(cursor, origin),
    limit: Math.min(limit, Math.max(1, Math.floor(ENTRIES / shelves.length))),
    locations: [...new Set(shelves.map(({ location }) => location))],
  });
  return {
    ok: true,
    items: page.items.map(({ quantities, deleted, ...item }) => ({
      ...item,
      stock: shelves.map(({ ref, location }) => ({
        location_ref: ref,
        quantity: quantities.get(location) ?? 0,
      })),
      deleted,
    })),
    cursor: `${page.last}.${origin}${page.epoch}`,
    has_more: page.hasMore,
  };
};
