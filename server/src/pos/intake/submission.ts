import type { NewRow } from '../../database/lease-types';
import { digestOf } from '../../stock/digest';
import type { ClosingRecord, PosRecord } from '../rules/records';
import type { EventFlag } from '../rules/states';
import { type ConnectionRow, type MappedLocation, mappedLocations } from '../tables';
import { type CountedPlaces, writePlaces } from '../mapping/counted-places';
import type { StaleLine } from './stale-counts';

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
export interface Candidate {
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
export const locate = (submission: Submission, fallback: number): Candidate => {
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

/** The row of a new event. `dueAt`: when it is to be applied, epoch milliseconds of the database. */
export const newRow = ({ candidate, stale, places }: Passed, dueAt: number): NewRow => {
  const { submission, locationId, onlyLocationId, refIgnored } = candidate;
  const { record, connection, receivedAtMs } = submission;
  const flags: EventFlag[] = [];
  if (record.clockAhead) flags.push('clock_ahead');
  if (refIgnored) flags.push('location_ignored');
  return {
    group: connection.id,
    dueAt,
    columns: {
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
    },
  };
};
