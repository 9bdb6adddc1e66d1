import type { Detached } from '../../database/connection';
import { isDuplicate, isInfrastructureFault, withTransientRetry } from '../../database/retry';
import type { InsertedRow } from '../../database/dialects';
import { inSpan, measures } from '../../observability/measures';
import { debugEach } from '../../runtime/text';
import { nextTurn } from '../../runtime/event-loop';
import { digestOf, type LevelRow } from '../../stock/tables';
import { type ItemName, lookUpItems } from '../../stock/items';
import { acceptCounts, type AcceptedCount } from '../../stock/ledger';
import { lockLevels, type Place, placeKey, readLevels } from '../../stock/levels';
import { defaultLocation } from '../../stock/locations';
import { judgeCounts } from '../../stock/rules/fold';
import { type CountedPlaces, writePlaces } from '../processing/counted-places';
import { loadMappings, type Mappings, type NamedLocation } from '../mappings';
import { getRecordStore } from '../processing/record-store';
import {
  type ClosingRecord,
  type CountLine,
  type InventoryRecord,
  lineNames,
  type PosRecord,
} from '../rules/records';
import type { ConnectionMode, EventFlag, EventState } from '../rules/states';
import type { BodyIssue } from '../rules/strict-json';
import { checkLocationRef } from '../rules/validate';
import {
  type ConnectionRow,
  type MappedLocation,
  mappedLocations,
  POS_EVENTS_TABLE,
  type PosEventRow,
} from '../tables';
import { readTrialCounts, saveTrialCounts } from '../trial-counts';
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

interface CountVerdict {
  /** False: every line is stale. */
  accepted: boolean;
  stale: StaleLine[];
  places: CountedPlaces;
}

interface CountJudge {
  /** Judges a stocktake of the batch; one that is accepted makes older ones after it stale. */
  judge(stocktake: Stocktake): CountVerdict;
  /** Writes down the newest accepted times, which later batches are judged by. */
  save(): Promise<void>;
}

/** The times of the newest accepted counts, by `placeKey`. */
class NewestCounts {
  readonly changed: Record<ConnectionMode, Map<string, AcceptedCount>> = {
    live: new Map(),
    test: new Map(),
  };

  constructor(private readonly times: Record<ConnectionMode, Map<string, number>>) {}

  /** A test count is judged against live ones too, and makes none of them stale. */
  at(key: string, mode: ConnectionMode): number | null {
    const live = this.times.live.get(key) ?? null;
    if (mode === 'live') return live;
    const test = this.times.test.get(key) ?? null;
    return live === null || test === null ? (live ?? test) : Math.max(live, test);
  }

  accept(place: Place, mode: ConnectionMode, time: number): void {
    const key = placeKey(place);
    if ((this.times[mode].get(key) ?? Number.NEGATIVE_INFINITY) >= time) return;
    this.times[mode].set(key, time);
    this.changed[mode].set(key, { ...place, at: time });
  }
}

const timesOf = (levels: ReadonlyMap<string, LevelRow>): Map<string, number> =>
  new Map(
    [...levels].flatMap(([key, { accepted_count_at: time }]): [string, number][] =>
      time === null ? [] : [[key, Number(time)]]
    )
  );

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

/**
 * Locks the levels of what a batch counts, so that its stocktakes can be judged one after the other
 * (docs/contract-pos.md#order) and no other node accepts a newer one meanwhile. Without stocktakes
 * it asks the database nothing.
 * @param lock  false where nothing is going to be accepted: then a stocktake may be judged, not saved
 */
const openCountJudge = async (
  tx: Tx,
  app: App,
  stocktakes: readonly Stocktake[],
  { lock = true }: { lock?: boolean } = {}
): Promise<CountJudge> => {
  const names = stocktakes.flatMap(({ record }) => lineNames(record));
  const lookup = names.length === 0 ? () => null : await lookUpItems(tx, app, names, null);
  const unknown = names.filter((name) => lookup(name) === null);
  const mappings = await loadMappings(tx, unknown, stocktakes.flatMap(unmappedLocation));
  const itemOf = (name: ItemName) => lookup(name) ?? mappings.ofLine(name)?.item ?? null;
  const places: Record<ConnectionMode, Place[]> = { live: [], test: [] };
  const linesOf = new Map<CountRecord, PlacedLine[]>();
  for (const stocktake of stocktakes) {
    const { record, mode } = stocktake;
    const location = stocktake.locationId ?? mappedLocation(stocktake, mappings);
    const lines = record.counts.map(({ sku, quantity }): PlacedLine => {
      const item = itemOf({ sku, gtin: null });
      if (item === null || location === null) return { sku, quantity, place: null };
      const place = { item, location };
      places[mode].push(place);
      return { sku, quantity, place };
    });
    linesOf.set(record, lines);
  }
  // Test mode makes no levels, and keeps none from others.
  const levels = await (lock ? lockLevels : readLevels)(tx, places.live);
  const tried = await readLevels(tx, places.test);
  const test = await readTrialCounts(tx, places.test);
  const newest = new NewestCounts({ live: timesOf(new Map([...tried, ...levels])), test });

  return {
    judge({ record, mode }) {
      const time = record.effectiveMs;
      const lines = linesOf.get(record) ?? [];
      const verdict = judgeCounts(
        time,
        lines.map(({ place, ...line }) => ({
          line,
          newestAcceptedTime: place === null ? null : newest.at(placeKey(place), mode),
        }))
      );
      const stale = verdict.verdict === 'fresh' ? [] : verdict.stale.map(({ line }) => line);
      const placed = lines.map(({ place }) => place);
      if (verdict.verdict === 'stale') return { accepted: false, stale, places: placed };
      for (const place of placed) if (place !== null) newest.accept(place, mode, time);
      return { accepted: true, stale, places: placed };
    },

    async save() {
      const accepted = [...newest.changed.live].flatMap(([key, { at }]) => {
        const level = levels.get(key);
        return level ? [{ levelId: Number(level.id), at }] : [];
      });
      await acceptCounts(tx, accepted);
      await saveTrialCounts(tx, [...newest.changed.test.values()]);
    },
  };
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
  places?: CountedPlaces;
}

/** The row of a new event. */
export const newRow = ({ candidate, stale, places }: Passed): InsertedRow => {
  const { submission, locationId, onlyLocationId, refIgnored } = candidate;
  const { record, connection, receivedAtMs } = submission;
  const flags: EventFlag[] = [];
  if (record.clockAhead) flags.push('clock_ahead');
  if (refIgnored) flags.push('location_ignored');
  return {
    connection_id: connection.id,
    kind: record.kind,
    external_id: record.externalId,
    external_digest: submission.idDigest,
    family_digest: submission.saleDigest,
    state: 'pending',
    mode: connection.mode,
    flags: JSON.stringify(flags),
    settled_flags: '[]',
    payload_mismatch: false,
    occurred_at: record.occurredAt,
    occurred_ms: record.occurredAtMs,
    effective_at: record.effectiveMs,
    received_at: receivedAtMs,
    processed_at: null,
    location_ref: record.locationRef,
    location_id: locationId,
    only_location_id: onlyLocationId,
    items: null,
    stale: JSON.stringify(stale),
    simulated: null,
    counted: null,
    counted_places: places ? writePlaces(places) : null,
    body: submission.body,
    body_digest: submission.bodyDigest,
    tries: 0,
    error: null,
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

const judgeOne = (candidate: Candidate, judge: CountJudge): Passed | Acceptance => {
  const { submission, mapped } = candidate;
  const issue = checkLocationRef(submission.record, mapped.length);
  if (issue) return { outcome: 'invalid', issue };
  const stocktake = stocktakeOf(candidate);
  if (!stocktake) return { candidate, stale: [] };
  const { accepted, stale, places } = judge.judge(stocktake);
  return accepted ? { candidate, stale, places } : { outcome: 'stale', stale };
};

interface Judged {
  /** By `keyOf`. */
  passed: Map<string, Passed>;
  refused: Map<Submission, Acceptance>;
}

/** In the order of arrival: a count may make the next one stale. */
const judgeAll = (candidates: readonly Candidate[], judge: CountJudge): Judged => {
  const judged: Judged = { passed: new Map(), refused: new Map() };
  for (const candidate of candidates) {
    const { submission } = candidate;
    const key = keyOf(submission);
    // The first of two equal ids in a batch is the record, the second its duplicate; but an id that
    // was refused is not taken.
    if (judged.passed.has(key)) continue;
    const verdict = judgeOne(candidate, judge);
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
  const stocktakes = [stocktakeOf(candidate)].filter((one) => one !== null);
  const judge = await openCountJudge(tx, app, stocktakes, { lock: false });
  return judgeOne(candidate, judge);
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

    const stocktakes = candidates.flatMap((candidate) => stocktakeOf(candidate) ?? []);
    const judge = await openCountJudge(tx, app, stocktakes);
    const judged = judgeAll(candidates, judge);
    await judge.save();

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

const accept = async (app: App, submissions: readonly Submission[]): Promise<Acceptance[]> => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const acceptances = await withTransientRetry(() => acceptBatch(app, submissions));
      debugEach(app.strapi, submissions.entries(), ([index, one]) =>
        acceptedLine(one, acceptances[index] as Acceptance)
      );
      return acceptances;
    } catch (error) {
      // Another process accepted one of the ids a moment ago: asked again, it is a duplicate.
      if (attempt >= TRIES || !isDuplicate(error)) throw error;
    }
  }
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
