import { isDeepStrictEqual } from 'node:util';
import type { Payload } from './payload';
import { isRecord } from '../../runtime/is-record';

const changedNames = (before: unknown, after: unknown): string[] => {
  const old = isRecord(before) ? before : {};
  const now = isRecord(after) ? after : {};
  const names = new Set([...Object.keys(old), ...Object.keys(now)]);
  return [...names].filter((name) => !isDeepStrictEqual(old[name] ?? null, now[name] ?? null));
};

/**
 * The top-level keys whose value differs, custom fields as `fields.<name>`. `dates` counts only for
 * dates that somebody sets: one that follows another change (`bookkeeping`) says nothing new.
 * @param keys the keys to compare; those that a write could not touch need not have been read.
 */
export const changedKeys = (
  before: Readonly<Record<string, unknown>>,
  after: Payload,
  keys: Iterable<string>,
  bookkeeping: ReadonlySet<string>
): string[] => {
  const changed: string[] = [];
  for (const key of keys) {
    if (key === 'fields') {
      changed.push(...changedNames(before.fields, after.fields).map((name) => `fields.${name}`));
    } else if (key === 'dates') {
      const names = changedNames(before.dates, after.dates);
      if (names.some((name) => !bookkeeping.has(`dates.${name}`))) changed.push('dates');
    } else if (!isDeepStrictEqual(before[key] ?? null, after[key] ?? null)) {
      changed.push(key);
    }
  }
  return changed;
};
