import type { Detached } from '../../database/connection';
import { isDuplicate, isInfrastructureFault, withTransientRetry } from '../../database/retry';
import { inSpan, measures } from '../../observability/measures';
import { debugEach } from '../../runtime/text';
import { nextTurn } from '../../runtime/event-loop';
import { digestOf } from '../../stock/tables';
import { type CountJudge, openCountJudge } from '../../stock/counts';
import { lookUpItems } from '../../stock/items';
import type { Place } from '../../stock/ledger';
import { defaultLocation } from '../../stock/locations';
import { type MappedLocation, mappedLocations } from '../connections';
import { type Places, writePlaces } from '../processing/resolve';
import { loadMappings, type Mappings, type NamedLocation } from '../mappings';
import { getRecordStore } from '../processing/record-store';
import {
  type ClosingRecord,
  type ConnectionMode,
  type CountLine,
  type EventFlag,
  type EventState,
  type InventoryRecord,
  linesOf,
  type PosRecord,
} from '../rules/records';
import type { BodyIssue } from '../rules/strict-json';
import { checkLocationRef } from '../rules/validate';
import { type ConnectionRow, POS_EVENTS_TABLE, type PosEventRow } from '../tables';
import type { App } from '../../app';
import type { Tx } from '../../database/db';

/** A stocktake; an adjustment is never stale. */
type CountRecord = InventoryRecord & { mode: 'absolute' };

const isCount = (record: PosRecord): record is CountRecord =>
  record.kind === 'inventory' && record.mode === 'absolute';

/**
 * Where and how a stocktake was taken. Without a location of its connection's own map it is where a
 * mapping of the inbox says; its lines cannot be stale where none does.
 */
interface Stocktake {
  record: CountRecord;
  connection: number;
  locationId: number | null;
  mode: ConnectionMode;
}

type StaleLine = Pick<CountLine, 'sku' | 'quantity'>;

/** A line of a stocktake; `place` is null where nobody can have counted it yet: no item, no place. */
type PlacedLine = StaleLine & { place: Place | null };

const unmappedLocation = ({ record, connection, locationId }: Stocktake): NamedLocation[] =>
  locationId === null && record.locationRef !== null
    ? [{ connection, ref: record.locationRef }]
    : [];

const mappedLocation = (stocktake: Stocktake, mappings: Mappings): number | null => {
  const [named] = unmappedLocation(stocktake);
  return named ? (mappings.ofLocation(named.connection, named.ref)?.location ?? null) : null;
};

/** What the lines of stocktakes count, as far as that is known. */
const placeLines = async (
  tx: Tx,
  app: App,
  stocktakes: readonly Stocktake[]
): Promise<Map<CountRecord, PlacedLine[]>> => {
  const names = stocktakes.flatMap(({ record }) => linesOf(record));
  const { lookup } = await lookUpItems(tx, app, names, 'leave');
  const unknown = names.filter((name) => lookup(name) === null);
  const mappings = await loadMappings(tx, unknown, stocktakes.flatMap(unmappedLocation));
  return new Map(
    stocktakes.map((stocktake): [CountRecord, PlacedLine[]] => {
      const location = stocktake.locationId ?? mappedLocation(stocktake, mappings);
      const lines = stocktake.record.counts.map(({ sku, quantity }): PlacedLine => {
        const name = { sku, gtin: null };
        const item = lookup(name) ?? mappings.ofLine(name)?.item ?? null;
        const place = item === null || location === null ? null : { item, location };
        return { sku, quantity, place };
      });
      return [stocktake.record, lines];
    })
  );
};

/** The stocktakes of a batch, and who says which of their lines are stale. */
interface Judging {
  lines: ReadonlyMap<PosRecord, readonly PlacedLine[]>;
  judge: CountJudge;
}

/** @param lock  false where nothing is going to be accepted */
const openJudging = async (
  tx: Tx,
  app: App,
  candidates: readonly Candidate[],
  { lock }: { lock: boolean }
): Promise<Judging> => {
  const stocktakes = candidates.flatMap((candidate) => stocktakeOf(candidate) ?? []);
  const lines = await placeLines(tx, app, stocktakes);
  const placesOf = (mode: ConnectionMode) =>
    stocktakes
      .filter((one) => one.mode === mode)
      .flatMap(({ record }) => (lines.get(record) ?? []).flatMap(({ place }) => place ?? []));
  const places = { live: placesOf('live'), test: placesOf('test') };
  return { lines, judge: await openCountJudge(tx, places, { lock }) };
};

/** A signed, valid record that asks to be accepted. */
export interface Submission<R extends PosRecord | ClosingRecord = PosRecord> {
  connection: ConnectionRow;
  record: R;
  /** The body exactly as sent, and a digest of it. */
  body: string;
  bodyDigest: string;
  /** `externalDigest` of its own id. */
  idDigest: string;
  /** The same of the sale that it is or names, by which its refund group is found. */
  saleDigest: string | null;
  receivedAtMs: number;
}

export const externalDigest = (externalId: string): string => digestOf(`id:${externalId}`);

const saleDigestOf = (record: PosRecord | ClosingRecord, idDigest: string): string | null => {
  if (record.kind === 'inventory' || record.kind === 'closing') return null;
  return record.kind === 'sale' ? idDigest : externalDigest(record.saleExternalId);
};

/** Digests ids and body here and nowhere later, however often the acceptance has to be tried. */
export const submissionOf = <R extends PosRecord | ClosingRecord>(
  connection: ConnectionRow,
  record: R,
  bytes: Buffer,
  receivedAtMs: number
): Submission<R> => {
  const body = bytes.toString('utf8');
  const idDigest = externalDigest(record.externalId);
  return {
    connection,
    record,
    body,
    bodyDigest: digestOf(body),
    idDigest,
    saleDigest: saleDigestOf(record, idDigest),
    receivedAtMs,
  };
};

/** A submission whose id is new, and where its goods are; frozen at acceptance. */
interface Candidate {
  submission: Submission;
  /** The connection's map, read once. */
  mapped: readonly MappedLocation[];
  /** null: it names a location that is not mapped, or (a refund) names none. */
  locationId: number | null;
  onlyLocationId: number | null;
  /** It names a location, and its connection maps none. */
  refIgnored: boolean;
}

/** Where a record's goods are, as its connection maps it now. */
const locate = (submission: Submission, fallback: number): Candidate => {
  const { locationRef, kind } = submission.record;
  const mapped = mappedLocations(submission.connection);
  const only =
    mapped.length === 0 ? fallback : mapped.length === 1 ? (mapped[0]?.location ?? null) : null;
  const candidate = { submission, mapped, onlyLocationId: only, refIgnored: false };
  if (locationRef === null) return { ...candidate, locationId: kind === 'refund' ? null : only };
  if (mapped.length === 0) return { ...candidate, locationId: fallback, refIgnored: true };
  const named = mapped.find(({ ref }) => ref === locationRef);
  return { ...candidate, locationId: named?.location ?? null };
};

/** One that passed the last checks, and is to be stored. */
export interface Passed {
  candidate: Candidate;
  /** Lines of a count that change nothing. */
  stale: StaleLine[];
  /** What the lines of a count are of, as far as that is known. */
  places?: Places;
}

/** The row of a new event, whatever its kind. */
export const rowOf = ({
  connection,
  record,
  idDigest,
  saleDigest,
  body,
  bodyDigest,
  receivedAtMs,
}: Submission<PosRecord | ClosingRecord>) => ({
  connection_id: Number(connection.id),
  kind: record.kind,
  external_id: record.externalId,
  external_digest: idDigest,
  family_digest: saleDigest,
  state: 'pending' as EventState,
  mode: connection.mode,
  flags: JSON.stringify(record.clockAhead ? ['clock_ahead'] : []),
  settled_flags: '[]',
  payload_mismatch: false,
  occurred_at: record.occurredAt,
  occurred_ms: record.occurredAtMs,
  effective_at: record.effectiveMs,
  received_at: receivedAtMs,
  processed_at: null as number | null,
  location_ref: record.locationRef,
  location_id: null as number | null,
  only_location_id: null as number | null,
  items: null,
  stale: '[]',
  simulated: null,
  counted: null,
  counted_places: null as string | null,
  body,
  body_digest: bodyDigest,
  tries: 0,
  error: null,
});

/** The row of a record that is to be applied. */
export const newRow = ({ candidate, stale, places }: Passed): ReturnType<typeof rowOf> => {
  const { submission, locationId, onlyLocationId, refIgnored } = candidate;
  const flags: EventFlag[] = submission.record.clockAhead ? ['clock_ahead'] : [];
  if (refIgnored) flags.push('location_ignored');
  return {
    ...rowOf(submission),
    flags: JSON.stringify(flags),
    location_id: locationId,
    only_location_id: onlyLocationId,
    stale: JSON.stringify(stale),
    counted_places: places ? writePlaces(places) : null,
  };
};

export type Acceptance =
  | { outcome: 'accepted'; eventId: number; stale: StaleLine[] }
  | {
      outcome: 'duplicate';
      eventId: number;
      state: EventState;
      mismatch: boolean;
      mode: ConnectionMode;
      stale: StaleLine[];
    }
  | { outcome: 'invalid'; issue: BodyIssue }
  | { outcome: 'stale'; stale: StaleLine[] };

/** An id is taken within its connection. */
const takenKey = (connection: number, idDigest: string): string => `${connection}/${idDigest}`;

const keyOf = ({ connection, idDigest }: Submission): string => takenKey(connection.id, idDigest);

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

type StoredEvent = Pick<PosEventRow, (typeof ANSWERED)[number]>;

/** The events that have the ids of these submissions, by `keyOf`. */
const findStored = async (
  tx: Tx,
  submissions: readonly Submission[]
): Promise<Map<string, StoredEvent>> => {
  const rows = (await tx
    .table(POS_EVENTS_TABLE)
    .select(...ANSWERED)
    .whereIn('connection_id', [...new Set(submissions.map(({ connection }) => connection.id))])
    .whereIn(
      'external_digest',
      submissions.map(({ idDigest }) => idDigest)
    )) as StoredEvent[];
  return new Map(
    rows.map((row) => [takenKey(Number(row.connection_id), row.external_digest), row])
  );
};

const locateAll = async (tx: Tx, fresh: readonly Submission[]): Promise<Candidate[]> => {
  if (fresh.length === 0) return [];
  const { id } = await defaultLocation(tx);
  return fresh.map((submission) => locate(submission, Number(id)));
};

const stocktakeOf = ({ submission, locationId }: Candidate): Stocktake | null => {
  const { record, connection } = submission;
  if (!isCount(record)) return null;
  return { record, connection: Number(connection.id), locationId, mode: connection.mode };
};

const judgeOne = (candidate: Candidate, { lines, judge }: Judging): Passed | Acceptance => {
  const { submission, mapped } = candidate;
  const { record, connection } = submission;
  const issue = checkLocationRef(record, mapped.length);
  if (issue) return { outcome: 'invalid', issue };
  const counted = lines.get(record);
  if (!counted) return { candidate, stale: [] };
  const verdict = judge.judge(record.effectiveMs, connection.mode, counted);
  const stale = verdict.stale.map(({ sku, quantity }) => ({ sku, quantity }));
  if (!verdict.accepted) return { outcome: 'stale', stale };
  return { candidate, stale, places: counted.map(({ place }) => place) };
};

interface Judged {
  /** By `keyOf`. */
  passed: Map<string, Passed>;
  refused: Map<Submission, Acceptance>;
}

/** In the order of arrival: a count may make the next one stale. */
const judgeAll = (candidates: readonly Candidate[], judging: Judging): Judged => {
  const judged: Judged = { passed: new Map(), refused: new Map() };
  for (const candidate of candidates) {
    const { submission } = candidate;
    const key = keyOf(submission);
    // The first of two equal ids in a batch is the record, the second its duplicate; but an id that
    // was refused is not taken.
    if (judged.passed.has(key)) continue;
    const verdict = judgeOne(candidate, judging);
    if ('outcome' in verdict) judged.refused.set(submission, verdict);
    else judged.passed.set(key, verdict);
  }
  return judged;
};

const answerOf = (
  submission: Submission,
  { passed, refused }: Judged,
  stored: ReadonlyMap<string, StoredEvent>
): Acceptance => {
  const refusal = refused.get(submission);
  if (refusal) return refusal;
  const key = keyOf(submission);
  const row = stored.get(key);
  if (!row) throw new Error('An accepted record is not in its transaction.');
  const eventId = Number(row.id);
  const mine = passed.get(key);
  if (mine?.candidate.submission === submission) {
    return { outcome: 'accepted', eventId, stale: mine.stale };
  }
  return {
    outcome: 'duplicate',
    eventId,
    state: row.state,
    mismatch: row.body_digest !== submission.bodyDigest,
    mode: row.mode,
    stale: JSON.parse(row.stale || '[]') as StaleLine[],
  };
};

/**
 * What would come of one record if it were sent now; locks nothing and writes nothing.
 * @returns what is to be stored, or the answer where it would not be
 */
export const judgeAlone = async (
  tx: Tx,
  app: App,
  submission: Submission
): Promise<Passed | Acceptance> => {
  const known = await findStored(tx, [submission]);
  if (known.size > 0) return answerOf(submission, { passed: new Map(), refused: new Map() }, known);
  const [candidate] = await locateAll(tx, [submission]);
  if (!candidate) throw new Error('A record was not located.');
  return judgeOne(candidate, await openJudging(tx, app, [candidate], { lock: false }));
};

/** Has the log show events whose id came again with another body; those that bear it already stay. */
const flagMismatches = async (
  tx: Tx,
  acceptances: readonly Acceptance[],
  stored: ReadonlyMap<string, StoredEvent>
): Promise<void> => {
  const flagged = new Set(
    [...stored.values()].flatMap(({ id, payload_mismatch: is }) => (is ? [Number(id)] : []))
  );
  const ids = acceptances.flatMap((one) =>
    one.outcome === 'duplicate' && one.mismatch && !flagged.has(one.eventId) ? [one.eventId] : []
  );
  if (ids.length === 0) return;
  await tx.table(POS_EVENTS_TABLE).whereIn('id', ids).update({ payload_mismatch: true });
};

/**
 * Accepts records, all in one transaction, each with an answer of its own (docs/tills.md#answers).
 * @throws the database's error; then nothing of the batch is accepted, and it may be tried again
 */
export const acceptBatch = (app: App, submissions: readonly Submission[]): Promise<Acceptance[]> =>
  app.db.transaction(async (tx) => {
    const known = await findStored(tx, submissions);
    const fresh = submissions.filter((one) => !known.has(keyOf(one)));
    const candidates = await locateAll(tx, fresh);
    const judging = await openJudging(tx, app, candidates, { lock: true });
    const judged = judgeAll(candidates, judging);
    await judging.judge.save();

    const accepted = [...judged.passed.values()];
    let stored = known;
    if (accepted.length > 0) {
      const store = getRecordStore(app);
      await store.insert(
        tx,
        accepted.map((one) => newRow(one))
      );
      tx.onCommit(store.announce);
      // Read again for their ids, which not every database gives for many rows at once.
      stored = await findStored(tx, submissions);
      await store.enqueue(
        tx,
        accepted.map(({ candidate: { submission } }) => ({
          id: Number(stored.get(keyOf(submission))?.id),
          connection_id: submission.connection.id,
          size: submission.body.length,
        })),
        store.now()
      );
    }

    const acceptances = submissions.map((one) => answerOf(one, judged, stored));
    await flagMismatches(tx, acceptances, stored);
    return acceptances;
  });

/**
 * What the log says of a till's record at the level `debug`, in the order in which it happens: the
 * `event_id` that the till was answered, states and times, and nothing that the till sent.
 * docs/operations.md#one-record-in-the-log.
 */

const acceptedLine = ({ connection, record }: Submission, given: Acceptance): string => {
  switch (given.outcome) {
    case 'accepted':
      return `POS event ${given.eventId} accepted: ${record.kind} of connection ${connection.id}`;
    case 'duplicate':
      return `POS event ${given.eventId} was sent again by connection ${connection.id}`;
    case 'invalid':
      return `${record.kind} of connection ${connection.id} refused: schema_invalid`;
    case 'stale':
      return `${record.kind} of connection ${connection.id} refused: stale_count`;
  }
};

interface Waiting<In, Out> {
  input: In;
  resolve(output: Out): void;
  reject(error: unknown): void;
}

/** One input's own result: it fails or succeeds by itself, whoever it travelled with. */
type Settled<Out> = { ok: true; value: Out } | { ok: false; error: unknown };

/**
 * Gathers what is waiting at the same moment into one piece of work: while one batch is under way,
 * the next one fills up. Nobody waits for company: a lone input starts at once.
 */
export const createBatcher = <In, Out>(
  detached: Detached,
  limit: number,
  work: (inputs: readonly In[]) => Promise<Settled<Out>[]>
): ((input: In) => Promise<Out>) => {
  const waiting: Waiting<In, Out>[] = [];
  let running = false;

  const settle = (
    { resolve, reject }: Waiting<In, Out>,
    result: Settled<Out> | undefined
  ): void => {
    if (result === undefined) reject(new Error('The batch gave no result for this input.'));
    else if (result.ok) resolve(result.value);
    else reject(result.error);
  };

  const run = async (): Promise<void> => {
    while (waiting.length > 0) {
      const batch = waiting.splice(0, limit);
      try {
        const results = await work(batch.map(({ input }) => input));
        batch.forEach((one, index) => settle(one, results[index]));
      } catch (error) {
        for (const one of batch) one.reject(error);
      }
    }
    running = false;
  };

  return (input) =>
    new Promise<Out>((resolve, reject) => {
      waiting.push({ input, resolve, reject });
      if (running) return;
      running = true;
      // A macrotask later: what arrived in this tick of the event loop goes along.
      detached(() => setImmediate(() => void run()));
    });
};

/** Records that share one commit at most. */
const BATCH = 100;

const TRIES = 5;

/** Where another process took an id a moment ago: asked again, the record is a duplicate. */
export const retryingTaken = async <T>(work: () => Promise<T>): Promise<T> => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await withTransientRetry(work);
    } catch (error) {
      if (attempt >= TRIES || !isDuplicate(error)) throw error;
    }
  }
};

const accept = async (app: App, submissions: readonly Submission[]): Promise<Acceptance[]> => {
  const acceptances = await retryingTaken(() => acceptBatch(app, submissions));
  debugEach(app.strapi, submissions.entries(), ([index, one]) =>
    acceptedLine(one, acceptances[index] as Acceptance)
  );
  return acceptances;
};

/** Accepts a record; resolves after its commit. */
export type Ingestion = (submission: Submission) => Promise<Acceptance>;

/**
 * Records that wait at the same moment share one transaction (a commit is the wall). One that cannot
 * be stored never fails its neighbours: then each is tried by itself.
 */
export const createIngestion = (app: App, detached: Detached): Ingestion => {
  const ingest = createBatcher<Submission, Acceptance>(detached, BATCH, async (submissions) => {
    try {
      const values = await accept(app, submissions);
      return values.map((value) => ({ ok: true, value }));
    } catch (error) {
      if (submissions.length === 1 || isInfrastructureFault(error)) {
        return submissions.map(() => ({ ok: false, error }));
      }
    }
    const results: Settled<Acceptance>[] = [];
    for (const one of submissions) {
      await nextTurn();
      try {
        const [value] = await accept(app, [one]);
        results.push({ ok: true, value: value as Acceptance });
      } catch (error) {
        results.push({ ok: false, error });
      }
    }
    return results;
  });
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
