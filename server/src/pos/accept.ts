import type { Core } from '@strapi/strapi';
import { inTransaction, table } from '../database/connection';
import type { NewWork } from '../queue/types';
import { digestOf } from '../stock/digest';
import { lockLevels, placeKey } from '../stock/levels';
import { lookUpItems } from '../stock/items';
import { defaultLocation } from '../stock/locations';
import { type LevelRow, LEVELS_TABLE } from '../stock/tables';
import { judgeCounts } from '../stock/rules/staleness';
import { getRecordQueue } from './queue';
import type { CountLine, InventoryRecord, PosRecord } from './rules/records';
import type { ConnectionMode, EventFlag, EventState } from './rules/states';
import type { BodyIssue } from './rules/strict-json';
import { checkLocationRef } from './rules/validate';
import {
  type ConnectionRow,
  type MappedLocation,
  mappedLocations,
  type PosEventRow,
  POS_EVENTS_TABLE,
} from './tables';

/** A signed, valid record that asks to be accepted. */
export interface Submission {
  connection: ConnectionRow;
  record: PosRecord;
  /** The body exactly as sent, and a digest of it. */
  body: string;
  bodyDigest: string;
  receivedAtMs: number;
}

export type StaleLine = Pick<CountLine, 'sku' | 'quantity'>;

export type Acceptance =
  | { outcome: 'accepted'; eventId: number; stale: StaleLine[] }
  | {
      outcome: 'duplicate';
      eventId: number;
      state: EventState;
      mismatch: boolean;
      stale: StaleLine[];
    }
  | { outcome: 'invalid'; issue: BodyIssue }
  | { outcome: 'stale'; stale: StaleLine[] };

export const externalDigest = (externalId: string): string => digestOf(`id:${externalId}`);

/** The sale that a record belongs to: its own id, or the one a refund names. */
const familyDigest = (record: PosRecord): string | null => {
  if (record.kind === 'inventory') return null;
  return externalDigest(record.kind === 'sale' ? record.externalId : record.saleExternalId);
};

const submissionKey = ({ connection, record }: Submission): string =>
  `${connection.id}/${externalDigest(record.externalId)}`;

interface Located {
  /** null: it names a location that is not mapped, or (a refund) names none. */
  locationId: number | null;
  onlyLocationId: number | null;
  ignored: boolean;
}

/** Where a record's goods are, as its connection maps it now; frozen at acceptance. */
const locate = (
  record: PosRecord,
  mapped: readonly MappedLocation[],
  fallback: number
): Located => {
  const only =
    mapped.length === 0 ? fallback : mapped.length === 1 ? (mapped[0]?.location ?? null) : null;
  const { locationRef } = record;
  if (locationRef === null) {
    return {
      locationId: record.kind === 'refund' ? null : only,
      onlyLocationId: only,
      ignored: false,
    };
  }
  if (mapped.length === 0) return { locationId: fallback, onlyLocationId: only, ignored: true };
  const named = mapped.find(({ ref }) => ref === locationRef);
  return { locationId: named?.location ?? null, onlyLocationId: only, ignored: false };
};

interface Prepared {
  submission: Submission;
  located: Located;
  stale: StaleLine[];
}

const isCount = (record: PosRecord): record is InventoryRecord & { mode: 'absolute' } =>
  record.kind === 'inventory' && record.mode === 'absolute';

const newWork = ({ submission, located, stale }: Prepared): NewWork => {
  const { record, connection, receivedAtMs } = submission;
  const flags: EventFlag[] = [];
  if (record.clockAhead) flags.push('clock_ahead');
  if (located.ignored) flags.push('location_ignored');
  return {
    group: connection.id,
    dueAt: receivedAtMs,
    columns: {
      kind: record.kind,
      external_id: record.externalId,
      external_digest: externalDigest(record.externalId),
      family_digest: familyDigest(record),
      state: 'pending',
      mode: connection.mode,
      flags: JSON.stringify(flags),
      settled_flags: '[]',
      payload_mismatch: false,
      occurred_at: record.occurredAt,
      effective_at: record.effectiveMs,
      received_at: receivedAtMs,
      processed_at: null,
      location_ref: record.locationRef,
      location_id: located.locationId,
      only_location_id: located.onlyLocationId,
      items: null,
      stale: JSON.stringify(stale),
      simulated: null,
      body: submission.body,
      body_digest: submission.bodyDigest,
      tries: 0,
      error: null,
    },
  };
};

const numberOrNull = (value: number | string | null | undefined): number | null =>
  value === null || value === undefined ? null : Number(value);

/** Newest accepted counts of a batch, under locks; a later record of the batch sees the earlier. */
class CountJudge {
  private readonly live = new Map<string, number | null>();
  private readonly test = new Map<string, number | null>();
  readonly changed = new Map<string, { level: LevelRow; mode: ConnectionMode; time: number }>();

  constructor(private readonly levels: ReadonlyMap<string, LevelRow>) {
    for (const [key, row] of levels) {
      this.live.set(key, numberOrNull(row.accepted_count_at));
      this.test.set(key, numberOrNull(row.test_count_at));
    }
  }

  /** A test count is judged against live ones too, and makes none of them stale. */
  newest(key: string, mode: ConnectionMode): number | null {
    const live = this.live.get(key) ?? null;
    if (mode === 'live') return live;
    const test = this.test.get(key) ?? null;
    return live === null || test === null ? (live ?? test) : Math.max(live, test);
  }

  accept(key: string, mode: ConnectionMode, time: number): void {
    const times = mode === 'live' ? this.live : this.test;
    const level = this.levels.get(key);
    if (!level || (times.get(key) ?? Number.NEGATIVE_INFINITY) >= time) return;
    times.set(key, time);
    this.changed.set(`${mode}/${key}`, { level, mode, time });
  }
}

/**
 * Accepts records, all in one transaction, each with an answer of its own (ARCHITECTURE.md, Order
 * of checks, from "duplicate" on). Staleness is judged while the levels are locked, against the
 * newest accepted count, queued ones too.
 * @throws the database's error; then nothing of the batch is accepted, and it may be tried again
 */
export const acceptBatch = (
  strapi: Core.Strapi,
  submissions: readonly Submission[]
): Promise<Acceptance[]> =>
  inTransaction(strapi, async ({ trx, onCommit }) => {
    const events = () => table(strapi, trx, POS_EVENTS_TABLE);
    const findEvents = async (list: readonly Submission[]): Promise<Map<string, PosEventRow>> => {
      const rows = (await events()
        .select(
          'id',
          'connection_id',
          'external_digest',
          'state',
          'body_digest',
          'payload_mismatch',
          'stale'
        )
        .whereIn('connection_id', [...new Set(list.map(({ connection }) => connection.id))])
        .whereIn(
          'external_digest',
          list.map(({ record }) => externalDigest(record.externalId))
        )) as PosEventRow[];
      return new Map(
        rows.map((row) => [`${Number(row.connection_id)}/${row.external_digest}`, row])
      );
    };

    const known = await findEvents(submissions);
    const fresh = submissions.filter((one) => !known.has(submissionKey(one)));
    const fallback = fresh.length > 0 ? Number((await defaultLocation(strapi, trx)).id) : 0;
    const located = new Map(
      fresh.map((one) => [one, locate(one.record, mappedLocations(one.connection), fallback)])
    );

    const counts = fresh.filter(({ record }) => isCount(record));
    const items =
      counts.length === 0
        ? () => null
        : await lookUpItems(
            strapi,
            trx,
            counts.flatMap(({ record }) =>
              isCount(record) ? record.counts.map(({ sku }) => ({ sku, gtin: null })) : []
            ),
            false
          );
    const placeOf = (one: Submission, sku: string): { item: number; location: number } | null => {
      const item = items({ sku, gtin: null });
      const location = located.get(one)?.locationId ?? null;
      return item === null || location === null ? null : { item, location };
    };
    const judge = new CountJudge(
      await lockLevels(
        strapi,
        trx,
        counts.flatMap((one) =>
          isCount(one.record) ? one.record.counts.flatMap(({ sku }) => placeOf(one, sku) ?? []) : []
        )
      )
    );

    const prepared = new Map<string, Prepared>();
    const refused = new Map<Submission, Acceptance>();
    for (const one of fresh) {
      // The first of two equal ids in a batch is the record, the second its duplicate.
      if (prepared.has(submissionKey(one))) continue;
      const { record, connection } = one;
      const issue = checkLocationRef(record, mappedLocations(connection).length);
      if (issue) {
        refused.set(one, { outcome: 'invalid', issue });
        continue;
      }
      let stale: StaleLine[] = [];
      if (isCount(record)) {
        const keyOf = (sku: string): string | null => {
          const place = placeOf(one, sku);
          return place && placeKey(place);
        };
        const verdict = judgeCounts(
          record.effectiveMs,
          record.counts.map(({ sku, quantity }) => {
            const key = keyOf(sku);
            return { sku, quantity, newestAcceptedTime: key && judge.newest(key, connection.mode) };
          }) as { sku: string; quantity: number; newestAcceptedTime: number | null }[]
        );
        if (verdict.verdict !== 'fresh') {
          stale = verdict.stale.map(({ sku, quantity }) => ({ sku, quantity }));
        }
        if (verdict.verdict === 'stale') {
          refused.set(one, { outcome: 'stale', stale });
          continue;
        }
        for (const { sku } of record.counts) {
          const key = keyOf(sku);
          if (key) judge.accept(key, connection.mode, record.effectiveMs);
        }
      }
      prepared.set(submissionKey(one), {
        submission: one,
        located: located.get(one) as Located,
        stale,
      });
    }

    for (const { level, mode, time } of judge.changed.values()) {
      const column = mode === 'live' ? 'accepted_count_at' : 'test_count_at';
      await table(strapi, trx, LEVELS_TABLE)
        .where({ id: level.id })
        .update({ [column]: time });
    }
    const { queue, wake } = getRecordQueue(strapi);
    const accepted = [...prepared.values()];
    if (accepted.length > 0) {
      await queue.enqueue(trx, accepted.map(newWork));
      onCommit(wake);
    }
    const stored = accepted.length === 0 ? known : await findEvents(submissions);

    const mismatched: number[] = [];
    const acceptances = submissions.map((one): Acceptance => {
      const refusal = refused.get(one);
      if (refusal) return refusal;
      const row = stored.get(submissionKey(one));
      if (!row) throw new Error('An accepted record is not in its transaction.');
      const mine = prepared.get(submissionKey(one));
      if (mine?.submission === one) {
        return { outcome: 'accepted', eventId: Number(row.id), stale: mine.stale };
      }
      const mismatch = row.body_digest !== one.bodyDigest;
      if (mismatch && !row.payload_mismatch) mismatched.push(Number(row.id));
      const stale = JSON.parse(row.stale || '[]') as StaleLine[];
      return { outcome: 'duplicate', eventId: Number(row.id), state: row.state, mismatch, stale };
    });
    if (mismatched.length > 0) {
      await events().whereIn('id', mismatched).update({ payload_mismatch: true });
    }
    return acceptances;
  });
