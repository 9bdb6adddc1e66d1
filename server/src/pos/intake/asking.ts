import type { Context } from 'koa';
import type {
  RecordStatus,
  TillMovement,
  Validated,
} from '../../../../shared/contracts/till-answers';
import { findInChunks } from '../../database/written-rows';
import { withTransientRetry } from '../../database/retry';
import { TimeSlice } from '../../runtime/event-loop';
import { isoTime } from '../../runtime/text';
import { type LedgerLine, movementsOfEvent } from '../../stock/ledger';
import { ITEMS_TABLE } from '../../stock/tables';
import { groupOf, type MappedLocation, mappedLocations } from '../connections';
import { timesOf, workOut } from '../processing/process';
import { type ProcessingContext, unknownLines } from '../processing/resolve';
import { type EventFlag, stateAfter } from '../rules/records';
import { type ConnectionRow, flagsOf, POS_EVENTS_TABLE, type PosEventRow } from '../tables';
import {
  type Acceptance,
  externalDigest,
  judgeAlone,
  newRow,
  type Passed,
  type Submission,
} from './accept';
import { answer, answerOfAcceptance, hasScope } from './answers';
import type { App } from '../../app';
import type { Db, Tx } from '../../database/db';

/** An id that no event has yet: of two counts of one time, the later arrival wins. */
const PREVIEW_ID = 2_147_483_647;

/** What a connection is told of movements. */
interface TellingRules {
  mapped: readonly MappedLocation[];
  /** It has the scope `stock:read`. */
  withQuantity: boolean;
}

/** A location as the connection names it; null where it has no name for it. */
const refOf = (mapped: readonly MappedLocation[], location: number): string | null =>
  mapped.find((one) => one.location === location)?.ref ?? null;

type Line = Pick<LedgerLine, 'location' | 'quantity' | 'effect' | 'quantityAfter'>;

const toldMovement = (
  sku: string,
  { location, quantity, effect, quantityAfter }: Line,
  { mapped, withQuantity }: TellingRules
): TillMovement => ({
  sku,
  location_ref: refOf(mapped, location),
  quantity,
  effect,
  ...(withQuantity && { quantity_after: quantityAfter }),
});

/** SKUs of items, by id. */
const skusOf = async (db: Db, items: readonly number[]): Promise<Map<number, string>> => {
  const rows = await findInChunks<{ id: number; sku: string }>(items, (some) =>
    db.table(ITEMS_TABLE).select('id', 'sku').whereIn('id', some)
  );
  return new Map(rows.map(({ id, sku }) => [Number(id), sku]));
};

/** Lines of the ledger as tills are told them, in their order. */
const toldMovements = async (
  db: Db,
  lines: readonly LedgerLine[],
  rules: TellingRules
): Promise<TillMovement[]> => {
  const skus = await skusOf(
    db,
    lines.map(({ item }) => item)
  );
  return lines.map((line) => toldMovement(skus.get(line.item) ?? line.sku ?? '', line, rules));
};

/** The row that the record would be, though it is never inserted. */
const previewRow = (passed: Passed): PosEventRow => ({
  took: null,
  refunded: null,
  money_left: null,
  ignored: null,
  accepted_at: null,
  by_hand: null,
  ...newRow(passed),
  id: PREVIEW_ID,
});

type Unknown = Validated['unknown'][number];

const unknownOf = (work: ProcessingContext): Unknown[] => {
  const { record, locationId } = work;
  const lines = unknownLines(work).map(({ sku, gtin }): Unknown =>
    sku === null ? { gtin: gtin ?? '' } : { sku }
  );
  const { locationRef } = record;
  const all = [
    ...lines,
    ...(locationId === null && locationRef !== null ? [{ location_ref: locationRef }] : []),
  ];
  return [...new Map(all.map((one) => [JSON.stringify(one), one])).values()];
};

const previewOfNew = async (
  tx: Tx,
  app: App,
  { connection }: Submission,
  passed: Passed
): Promise<Validated> => {
  const row = previewRow(passed);
  const { batch } = await workOut(tx, app, [row], {
    connections: await groupOf(tx, Number(connection.id)),
    times: timesOf(app),
    preview: true,
  });
  const [work] = batch;
  if (!work) throw new Error('The connection of a record is gone.');
  const movements = await toldMovements(tx, work.moved, {
    mapped: mappedLocations(connection),
    withQuantity: hasScope(connection, 'stock:read'),
  });
  return {
    ok: true,
    state: stateAfter('pending', work.state),
    duplicate: false,
    stale: passed.stale,
    flags: [...(JSON.parse(row.flags) as EventFlag[]), ...work.flags],
    movements,
    unknown: unknownOf(work),
  };
};

const isPassed = (verdict: Passed | Acceptance): verdict is Passed => 'candidate' in verdict;

/** A record whose id is taken changes nothing any more. */
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
 * What would become of a record (docs/tills.md#trying-a-record): worked out by what processes
 * records, in a transaction that locks no level and is rolled back. Nothing is stored.
 * @throws Refusal where the record would not be accepted
 */
export const previewOf = (app: App, submission: Submission): Promise<Validated> =>
  withTransientRetry(() =>
    app.db.rolledBack(async (tx) => {
      const verdict = await judgeAlone(tx, app, submission);
      return isPassed(verdict)
        ? previewOfNew(tx, app, submission, verdict)
        : previewOfKnown(submission, verdict);
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

const movementsOf = async (db: Db, event: number, rules: TellingRules): Promise<TillMovement[]> => {
  const rows = await movementsOfEvent(db, event);
  return rows.map(({ sku, location, quantity, effect, quantity_after: quantityAfter }) =>
    toldMovement(sku, { location: location.id, quantity, effect, quantityAfter }, rules)
  );
};

const simulatedOf = async (db: Db, event: number, rules: TellingRules): Promise<TillMovement[]> => {
  const row = (await db
    .table(POS_EVENTS_TABLE)
    .select('simulated')
    .where({ id: event })
    .first()) as Pick<PosEventRow, 'simulated'> | undefined;
  const lines = JSON.parse(row?.simulated ?? '[]') as LedgerLine[];
  return toldMovements(db, lines, rules);
};

/**
 * Answers what became of records of the connection, in the order asked
 * (docs/tills.md#what-became-of-a-record). Written as text, a record after the other: a hundred of a
 * thousand lines each would hold the event loop.
 */
export const answerStatus = async (
  app: App,
  ctx: Context,
  connection: ConnectionRow,
  ids: readonly string[]
): Promise<void> => {
  const db = await app.db.current();
  const rules: TellingRules = {
    mapped: mappedLocations(connection),
    withQuantity: hasScope(connection, 'stock:read'),
  };
  const rows = (await db
    .table(POS_EVENTS_TABLE)
    .select(...COLUMNS)
    .where({ connection_id: connection.id })
    .whereIn('external_digest', [...new Set(ids.map(externalDigest))])) as Found[];
  const byDigest = new Map(rows.map((row) => [row.external_digest, row]));

  const statusOf = async (externalId: string): Promise<RecordStatus> => {
    const row = byDigest.get(externalDigest(externalId));
    if (!row) return { external_id: externalId, state: 'unknown' };
    const event = Number(row.id);
    const read = row.mode === 'test' ? simulatedOf : movementsOf;
    return {
      external_id: externalId,
      event_id: event,
      kind: row.kind,
      state: row.state,
      flags: flagsOf(row),
      accepted_at: isoTime(Number(row.received_at)),
      movements: await read(db, event, rules),
    };
  };

  const texts: string[] = [];
  const slice = new TimeSlice();
  for (const id of ids) {
    if (slice.isOver()) await slice.next();
    texts.push(JSON.stringify(await statusOf(id)));
  }
  answer(ctx, 200, `{"ok":true,"records":[${texts.join(',')}]}`);
  ctx.type = 'application/json';
};
