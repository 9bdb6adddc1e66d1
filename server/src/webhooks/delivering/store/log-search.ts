import type { SubjectType } from '../../../../../shared/contracts/webhooks';
import type { Executor } from '../../../database/connection';
import { COUNT_LIMIT } from '../../../http/pagination';
import { nextTurn } from '../../../runtime/event-loop';
import type { SearchedLog } from '../../rules/log-cursor';
import { isAfter, type LogPlace } from '../../rules/log-place';
import type { DeliveryRow } from '../../tables';
import type { Branch } from '../../deliveries/log-filter';
import { placeOf, readStretch } from './log-pages';

/** Deliveries that are looked at at most, newest first, where no index finds what is looked for. */
export const LOOKED_AT = 50_000;
/** Read together: few enough that on SQLite the event loop is not held. */
const AT_ONCE = 1_000;

/** What has to be looked for, because no index finds it in the order of the log. */
export interface Search {
  /** In a delivery's id, its subject's label or its cause. */
  text?: string;
  subjectType?: SubjectType;
}

const COLUMNS = [
  'id',
  'document_id',
  'webhook_id',
  'error',
  'subject_type',
  'subject_label',
  'created_at',
  'site_instance',
] as const;

/** What of a delivery is looked at. */
export type LookedAt = Pick<DeliveryRow, (typeof COLUMNS)[number]>;

/** The rows of one branch, read part by part. */
interface Reader {
  branch: Branch;
  rows: LookedAt[];
  next: number;
  isRead: boolean;
}

/** Reads on where a branch has no row at hand. @returns its next row; undefined at its end */
const headOf = async (
  executor: Executor,
  reader: Reader,
  after: LogPlace | null
): Promise<LookedAt | undefined> => {
  if (reader.next < reader.rows.length || reader.isRead) return reader.rows[reader.next];
  // SQLite's driver answers within the same turn of the event loop.
  await nextTurn();
  const last = reader.rows.at(-1);
  const stretch = { after: last ? placeOf(last) : after, limit: AT_ONCE };
  reader.rows = await readStretch(executor, [reader.branch], COLUMNS, stretch);
  reader.next = 0;
  reader.isRead = reader.rows.length < AT_ONCE;
  return reader.rows[0];
};

/**
 * The newest `LOOKED_AT` of the rows that the branches have, newest first.
 * @param after begins after this place; null: with the newest
 */
export async function* newest(
  executor: Executor,
  branches: readonly Branch[],
  after: LogPlace | null = null
): AsyncGenerator<LookedAt> {
  const readers = branches.map(
    (branch) => ({ branch, rows: [], next: 0, isRead: false }) as Reader
  );
  for (let looked = 0; looked < LOOKED_AT; looked += 1) {
    let first: Reader | undefined;
    let head: LookedAt | undefined;
    for (const reader of readers) {
      const row =
        reader.next < reader.rows.length
          ? reader.rows[reader.next]
          : await headOf(executor, reader, after);
      if (!row || (head && isAfter(placeOf(row), placeOf(head)))) continue;
      [first, head] = [reader, row];
    }
    if (!first || !head) return;
    first.next += 1;
    yield head;
  }
}

/** Whether a delivery is what is looked for; texts in any case. */
export const matcher = ({ text, subjectType }: Search): ((row: LookedAt) => boolean) => {
  const wanted = text?.toLowerCase() ?? '';
  const has = (value: string | null): boolean => value?.toLowerCase().includes(wanted) ?? false;
  return ({ document_id: id, error, subject_type: type, subject_label: label }) =>
    (subjectType === undefined || type === subjectType) && [id, label, error].some(has);
};

export interface Found {
  places: LogPlace[];
  /** null: there was nothing to look at. */
  searched: SearchedLog | null;
}

/** Looks through the newest `LOOKED_AT`. @returns every match, however many there are. */
export const findAll = async (
  executor: Executor,
  branches: readonly Branch[],
  search: Search
): Promise<Found> => {
  const matches = matcher(search);
  const places: LogPlace[] = [];
  let end: LogPlace | null = null;
  for await (const row of newest(executor, branches)) {
    end = placeOf(row);
    if (matches(row)) places.push(end);
  }
  const total = Math.min(places.length, COUNT_LIMIT);
  const totalCapped = places.length > COUNT_LIMIT;
  return { places, searched: end && { end, total, totalCapped } };
};

/**
 * Goes on with a search after a place, to where it ended.
 * @param limit of the matches that are wanted
 */
export const findMore = async (
  executor: Executor,
  branches: readonly Branch[],
  { search, after, end, limit }: { search: Search; after: LogPlace; end: LogPlace; limit: number }
): Promise<LogPlace[]> => {
  const matches = matcher(search);
  const places: LogPlace[] = [];
  for await (const row of newest(executor, branches, after)) {
    const place = placeOf(row);
    if (isAfter(place, end)) break;
    if (matches(row)) places.push(place);
    if (places.length >= limit) break;
  }
  return places;
};
