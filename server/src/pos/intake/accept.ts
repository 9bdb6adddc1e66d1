import { isInfrastructureFault } from '../../database/retry';
import { inSpan, measures } from '../../observability/measures';
import { createGathering } from '../../runtime/event-loop';
import { debugEach, digestOf } from '../../runtime/text';
import { type CountJudge, openCountJudge } from '../../stock/counts';
import { lookUpItems } from '../../stock/items';
import type { Place } from '../../stock/ledger';
import { defaultLocation } from '../../stock/locations';
import { type MappedLocation, mappedLocations } from '../connections';
import { loadMappings } from '../mappings';
import { getRecordStore, type RecordStore } from '../processing/record-store';
import { writePlaces } from '../processing/resolve';
import {
  type ClosingRecord,
  type ConnectionMode,
  type CountLine,
  type EventFlag,
  type EventState,
  linesOf,
  type PosRecord,
} from '../rules/records';
import type { BodyIssue } from '../rules/strict-json';
import { checkLocationRef } from '../rules/validate';
import { type ConnectionRow, POS_EVENTS_TABLE, type PosEventRow } from '../tables';
import type { App } from '../../app';
import type { Tx } from '../../database/db';

/** A signed, valid record that asks to be accepted. */
export interface Submission<R extends PosRecord | ClosingRecord = PosRecord> {
  connection: ConnectionRow;
  record: R;
  /** The body exactly as sent, and a digest of it. */
  body: string;
  bodyDigest: string;
  /** `externalDigest` of its own id. */
  idDigest: string;
  /** The digest of the sale that it is or names, by which its refund group is found. */
  saleDigest: string | null;
  /** An id is taken within its connection. */
  key: string;
  receivedAtMs: number;
}

type AnySubmission = Submission<PosRecord | ClosingRecord>;

export const externalDigest = (externalId: string): string => digestOf(`id:${externalId}`);

/** Digests ids and body here and nowhere later, however often the acceptance has to be tried. */
export const submissionOf = <R extends PosRecord | ClosingRecord>(
  connection: ConnectionRow,
  record: R,
  bytes: Buffer,
  receivedAtMs: number
): Submission<R> => {
  const body = bytes.toString('utf8');
  const idDigest = externalDigest(record.externalId);
  const { kind } = record;
  return {
    connection,
    record,
    body,
    bodyDigest: digestOf(body),
    idDigest,
    saleDigest:
      kind === 'refund' ? externalDigest(record.saleExternalId) : kind === 'sale' ? idDigest : null,
    key: `${connection.id}/${idDigest}`,
    receivedAtMs,
  };
};

type StaleLine = Pick<CountLine, 'sku' | 'quantity'>;

/** A line of a stocktake; `place` is null if nobody can have counted it yet: no item, no place. */
type PlacedLine = StaleLine & { place: Place | null };

/** A submission whose id is new, and where its goods are; frozen at acceptance. */
interface Candidate {
  submission: Submission;
  mapped: readonly MappedLocation[];
  /** null: it names a location that is not mapped, or (a refund) names none. */
  locationId: number | null;
  onlyLocationId: number | null;
  /** It names a location, and its connection maps none. */
  refIgnored: boolean;
  /** The counted lines of a stocktake; null for all others, which are never stale. */
  counted: PlacedLine[] | null;
}

const locate = (submission: Submission, fallback: number): Candidate => {
  const { locationRef, kind } = submission.record;
  const mapped = mappedLocations(submission.connection);
  const only =
    mapped.length === 0 ? fallback : mapped.length === 1 ? (mapped[0]?.location ?? null) : null;
  const base = { submission, mapped, onlyLocationId: only, refIgnored: false, counted: null };
  if (locationRef === null) return { ...base, locationId: kind === 'refund' ? null : only };
  if (mapped.length === 0) return { ...base, locationId: fallback, refIgnored: true };
  const named = mapped.find(({ ref }) => ref === locationRef);
  return { ...base, locationId: named?.location ?? null };
};

/** Finds out what stocktakes count. @returns who judges them, one after the other */
const openJudge = async (
  tx: Tx,
  app: App,
  stocktakes: readonly Candidate[],
  { lock }: { lock: boolean }
): Promise<CountJudge> => {
  const names = stocktakes.flatMap(({ submission }) => linesOf(submission.record));
  const { lookup } = await lookUpItems(tx, app, names, 'leave');
  const unknown = names.filter((name) => lookup(name) === null);
  // The inbox maps the locations that the connection's own map does not.
  const locations = stocktakes.flatMap(({ submission: { connection, record }, locationId }) =>
    locationId === null && record.locationRef !== null
      ? [{ connection: Number(connection.id), ref: record.locationRef }]
      : []
  );
  const mappings = await loadMappings(tx, unknown, locations);
  const places: Record<ConnectionMode, Place[]> = { live: [], test: [] };
  for (const stocktake of stocktakes) {
    const { connection, record } = stocktake.submission;
    const to = mappings.ofLocation(Number(connection.id), record.locationRef ?? '');
    const location = stocktake.locationId ?? to?.location ?? null;
    stocktake.counted = linesOf(record).map((line): PlacedLine => {
      const item = lookup(line) ?? mappings.ofLine(line)?.item ?? null;
      const place = item === null || location === null ? null : { item, location };
      if (place) places[connection.mode].push(place);
      return { sku: line.sku ?? '', quantity: line.quantity, place };
    });
  }
  return openCountJudge(tx, places, { lock });
};

/**
 * Locates the goods of new submissions; returns them, and the judge of their stocktakes (null without stocktakes).
 * @param lock false if nothing will be accepted
 */
const locateAll = async (
  tx: Tx,
  app: App,
  fresh: readonly Submission[],
  { lock }: { lock: boolean }
): Promise<{ candidates: Candidate[]; judge: CountJudge | null }> => {
  if (fresh.length === 0) return { candidates: [], judge: null };
  const { id } = await defaultLocation(tx);
  const candidates = fresh.map((submission) => locate(submission, Number(id)));
  const stocktakes = candidates.filter(
    ({ submission: { record } }) => record.kind === 'inventory' && record.mode === 'absolute'
  );
  const judge = stocktakes.length > 0 ? await openJudge(tx, app, stocktakes, { lock }) : null;
  return { candidates, judge };
};

/** One that passed the last checks, and is to be stored. */
export interface Passed extends Candidate {
  /** Lines of a count that change nothing. */
  stale: StaleLine[];
}

interface Duplicate {
  outcome: 'duplicate';
  eventId: number;
  state: EventState;
  mismatch: boolean;
  mode: ConnectionMode;
  stale: StaleLine[];
}

export type Acceptance =
  | { outcome: 'accepted'; eventId: number; stale: StaleLine[] }
  | Duplicate
  | { outcome: 'invalid'; issue: BodyIssue }
  | { outcome: 'stale'; stale: StaleLine[] };

const judgeOne = (candidate: Candidate, judge: CountJudge | null): Passed | Acceptance => {
  const { submission, mapped, counted } = candidate;
  const { record, connection } = submission;
  const issue = checkLocationRef(record, mapped.length);
  if (issue) return { outcome: 'invalid', issue };
  if (!counted || !judge) return { ...candidate, stale: [] };
  const verdict = judge.judge(record.effectiveMs, connection.mode, counted);
  const stale = verdict.stale.map(({ sku, quantity }) => ({ sku, quantity }));
  return verdict.accepted ? { ...candidate, stale } : { outcome: 'stale', stale };
};

/** The row of a new event of any kind; columns set by processing are omitted. `passed`: it will be applied. */
export const rowOf = (submission: AnySubmission, passed?: Passed) => {
  const { connection, record } = submission;
  const flags: EventFlag[] = record.clockAhead ? ['clock_ahead'] : [];
  if (passed?.refIgnored) flags.push('location_ignored');
  return {
    connection_id: Number(connection.id),
    kind: record.kind,
    external_id: record.externalId,
    external_digest: submission.idDigest,
    family_digest: submission.saleDigest,
    state: 'pending' as EventState,
    mode: connection.mode,
    flags: JSON.stringify(flags),
    settled_flags: '[]',
    payload_mismatch: false,
    occurred_at: record.occurredAt,
    occurred_ms: record.occurredAtMs,
    effective_at: record.effectiveMs,
    received_at: submission.receivedAtMs,
    location_ref: record.locationRef,
    location_id: passed?.locationId ?? null,
    only_location_id: passed?.onlyLocationId ?? null,
    stale: JSON.stringify(passed?.stale ?? []),
    counted_places: passed?.counted ? writePlaces(passed.counted.map(({ place }) => place)) : null,
    body: submission.body,
    body_digest: submission.bodyDigest,
    tries: 0,
  };
};

const ANSWERED = [
  'id',
  'connection_id',
  'external_digest',
  'state',
  'mode',
  'body_digest',
  'payload_mismatch',
  'stale',
] as const satisfies readonly (keyof PosEventRow)[];

export type StoredEvent = Pick<PosEventRow, (typeof ANSWERED)[number]>;
type StoredEvents = ReadonlyMap<string, StoredEvent>;

/** The events that have the ids of these submissions, by their keys. */
export const findStored = async (
  tx: Tx,
  submissions: readonly AnySubmission[]
): Promise<StoredEvents> => {
  const digests = submissions.map(({ idDigest }) => idDigest);
  const rows: StoredEvent[] = await tx
    .table(POS_EVENTS_TABLE)
    .select(...ANSWERED)
    .whereIn('connection_id', [...new Set(submissions.map(({ connection }) => connection.id))])
    .whereIn('external_digest', digests);
  return new Map(rows.map((row) => [`${row.connection_id}/${row.external_digest}`, row]));
};

/** The acceptance of a record whose id was taken. */
export const duplicateOf = (
  { bodyDigest }: AnySubmission,
  { id, state, mode, body_digest: digest, stale }: StoredEvent
): Duplicate => ({
  outcome: 'duplicate',
  eventId: Number(id),
  state,
  mismatch: digest !== bodyDigest,
  mode,
  stale: JSON.parse(stale || '[]') as StaleLine[],
});

/** The outcome of a record if it were sent now: what would be stored, or else the answer. Locks and writes nothing. */
export const judgeUnlocked = async (
  tx: Tx,
  app: App,
  submission: Submission
): Promise<Passed | Acceptance> => {
  const known = (await findStored(tx, [submission])).get(submission.key);
  if (known) return duplicateOf(submission, known);
  const { candidates, judge } = await locateAll(tx, app, [submission], { lock: false });
  const [candidate] = candidates;
  if (!candidate) throw new Error('A record was not located.');
  return judgeOne(candidate, judge);
};

/** Writes records into the log, and queues them. @returns them and those with the ids of the others */
const store = async (
  tx: Tx,
  records: RecordStore,
  submissions: readonly Submission[],
  passed: readonly Passed[]
): Promise<StoredEvents> => {
  const rows = passed.map((one) => rowOf(one.submission, one));
  await tx.insert(POS_EVENTS_TABLE, rows);
  // Read again for their ids, which not every database gives for many rows at once.
  const stored = await findStored(tx, submissions);
  const queued = passed.map(({ submission }) => ({
    id: Number(stored.get(submission.key)?.id),
    connection_id: submission.connection.id,
    size: submission.body.length,
  }));
  await records.enqueue(tx, queued, records.now());
  return stored;
};

/**
 * Accepts records in one transaction, each with its own answer (docs/tills.md#answers). Repeated if another process
 * takes an id concurrently; the record is then a duplicate. On a database error nothing is accepted, and it may be
 * retried.
 * @param records the store that queues them
 */
export const acceptBatch = (
  app: App,
  submissions: readonly Submission[],
  records = getRecordStore(app)
): Promise<Acceptance[]> =>
  app.db.unique(async (tx) => {
    const known = await findStored(tx, submissions);
    const fresh = submissions.filter((one) => !known.has(one.key));
    const { candidates, judge } = await locateAll(tx, app, fresh, { lock: true });
    const passed = new Map<string, Passed>();
    const refused = new Map<Submission, Acceptance>();
    // In the order of arrival: a count may make the next one stale.
    for (const candidate of candidates) {
      const { submission } = candidate;
      const { key } = submission;
      // The first of equal ids in a batch is the record, the second its duplicate; a refused id is not taken.
      if (passed.has(key)) continue;
      const verdict = judgeOne(candidate, judge);
      if ('outcome' in verdict) refused.set(submission, verdict);
      else passed.set(key, verdict);
    }
    await judge?.save();
    const stored =
      passed.size === 0 ? known : await store(tx, records, submissions, [...passed.values()]);
    const mismatched = new Set<number>();
    const acceptances = submissions.map((one): Acceptance => {
      const refusal = refused.get(one);
      if (refusal) return refusal;
      const row = stored.get(one.key);
      if (!row) throw new Error('An accepted record is not in its transaction.');
      const accepted = passed.get(one.key);
      if (accepted?.submission === one) {
        return { outcome: 'accepted', eventId: Number(row.id), stale: accepted.stale };
      }
      const duplicate = duplicateOf(one, row);
      if (duplicate.mismatch && !row.payload_mismatch) mismatched.add(duplicate.eventId);
      return duplicate;
    });
    if (mismatched.size > 0) {
      const rows = tx.table(POS_EVENTS_TABLE).whereIn('id', [...mismatched]);
      await rows.update({ payload_mismatch: true });
    }
    return acceptances;
  });

/** The `debug` log line of a record: `event_id`, nothing that the till sent. docs/logs.md#one-record-in-the-log */
const acceptedLine = ({ connection, record }: Submission, given: Acceptance): string => {
  const sent = `${record.kind} of connection ${connection.id}`;
  switch (given.outcome) {
    case 'accepted':
      return `POS event ${given.eventId} accepted: ${sent}`;
    case 'duplicate':
      return `POS event ${given.eventId} was sent again by connection ${connection.id}`;
    default:
      return `${sent} refused: ${given.outcome === 'stale' ? 'stale_count' : 'schema_invalid'}`;
  }
};

/** Records that share one commit at most. */
const BATCH = 100;

/** Accepts a record; resolves after its commit. */
export type Ingestion = (submission: Submission) => Promise<Acceptance>;

/** Gathers concurrent records into one transaction, because commits are the bottleneck; a bad one fails only itself. */
export const createIngestion = (app: App): Ingestion => {
  const records = getRecordStore(app);
  const ingest = createGathering<Submission, Acceptance>(
    async (submissions) => {
      const acceptances = await acceptBatch(app, submissions, records);
      debugEach(app.strapi, submissions.entries(), ([index, one]) =>
        acceptedLine(one, acceptances[index] as Acceptance)
      );
      return acceptances;
    },
    { limit: BATCH, detached: app.detached, isShared: isInfrastructureFault }
  );
  return (submission) => {
    const { connection, record } = submission;
    const attributes = {
      'switchboard.connection_id': Number(connection.id),
      'switchboard.kind': record.kind,
    };
    return inSpan('switchboard.intake', attributes, async () => {
      const acceptance = await ingest(submission);
      measures().accepted.add(1, { kind: record.kind });
      return acceptance;
    });
  };
};
