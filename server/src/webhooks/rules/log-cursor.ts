import type { LogPlace } from './log-place';

/** What a search for a text found with its first page, for the pages that follow. */
export interface SearchedLog {
  /** The last place that is searched. */
  end: LogPlace;
  /** Matches up to there, counted up to the limit of all lists. */
  total: number;
  totalCapped: boolean;
}

/** Where the next page of the log begins: after a place that does not move when rows arrive. */
export interface LogCursor {
  after: LogPlace;
  searched: SearchedLog | null;
}

const LATEST = 8_640_000_000_000_000;
const LARGEST_ID = 2_147_483_647;

/** Somebody may have made it up: what is in it must be right for a statement and for an answer. */
const isNumber = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= LATEST;

const NUMBERS_OF_SEARCH = 6;

/** As text that goes into an address as it is; what is in it is nobody's business but ours. */
export const formatCursor = ({ after, searched }: LogCursor): string => {
  const search = searched
    ? [searched.end.at, searched.end.id, searched.total, Number(searched.totalCapped)]
    : [];
  return Buffer.from(JSON.stringify([after.at, after.id, ...search])).toString('base64url');
};

/** @returns null for what `formatCursor` has not made */
export const parseCursor = (text: string): LogCursor | null => {
  let numbers: unknown;
  try {
    numbers = JSON.parse(Buffer.from(text, 'base64url').toString());
  } catch {
    return null;
  }
  if (!Array.isArray(numbers) || !numbers.every(isNumber)) return null;
  const [at = 0, id = 0, endAt = 0, endId = 0, total = 0, capped = 0] = numbers;
  if (id > LARGEST_ID || endId > LARGEST_ID) return null;
  const after = { at, id };
  if (numbers.length === 2) return { after, searched: null };
  if (numbers.length !== NUMBERS_OF_SEARCH) return null;
  return {
    after,
    searched: { end: { at: endAt, id: endId }, total, totalCapped: capped === 1 },
  };
};
