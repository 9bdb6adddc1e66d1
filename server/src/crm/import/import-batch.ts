import type { Core } from '@strapi/strapi';
import { getInspected } from '../sources/registry';
import { emailKey } from '../upkeep/email-key';
import type { BatchResult } from './batch-result';
import type { ImportRow } from './columns';
import { importEach } from './import-each';
import type { ImportTags } from './import-tags';
import { inImportTransaction } from './import-transaction';
import { insertContacts } from './insert-contacts';
import { changeOf, type KnownContact, readKnown } from './known-contacts';
import { isPlain, updateContacts } from './update-contacts';

/** The n-th row of an address is in the n-th round: each sees what the one before it made. */
const roundsOf = (rows: readonly ImportRow[]): ImportRow[][] => {
  const rounds: ImportRow[][] = [];
  const seen = new Map<string, number>();
  for (const row of rows) {
    const key = emailKey(row.email) ?? '';
    const round = seen.get(key) ?? 0;
    seen.set(key, round + 1);
    (rounds[round] ??= []).push(row);
  }
  return rounds;
};

interface Sorted {
  fresh: ImportRow[];
  changed: ImportRow[];
  /** Contacts of the changed rows, by the key of their address. */
  found: Map<string, KnownContact>;
  unchanged: number;
  /** Rows that need more than the rows of two tables: each goes by itself. */
  single: ImportRow[];
}

const sort = async (
  strapi: Core.Strapi,
  tags: ImportTags,
  rows: readonly ImportRow[]
): Promise<Sorted> => {
  const sorted: Sorted = { fresh: [], changed: [], found: new Map(), unchanged: 0, single: [] };
  const { source, tagSource } = getInspected(strapi, 'contact');
  const isOwn = (row: ImportRow): boolean =>
    source.own && (row.tags.length === 0 || (tagSource.own && source.tags !== null));
  const own = rows.filter(isOwn);
  sorted.single.push(...rows.filter((row) => !isOwn(row)));
  const contacts = own.length > 0 ? await readKnown(strapi, own) : new Map<string, KnownContact>();
  for (const row of own) {
    const key = emailKey(row.email) ?? '';
    const known = contacts.get(key);
    if (!known) {
      (isPlain(row.input) ? sorted.fresh : sorted.single).push(row);
      continue;
    }
    const change = await changeOf(tags, row, known);
    if (!change) {
      sorted.unchanged += 1;
    } else if (isPlain(change.changes)) {
      sorted.changed.push(row);
      sorted.found.set(key, known);
    } else {
      sorted.single.push(row);
    }
  }
  return sorted;
};

const importRound = async (
  strapi: Core.Strapi,
  tags: ImportTags,
  rows: readonly ImportRow[],
  result: BatchResult
): Promise<void> => {
  const { fresh, changed, found, unchanged, single } = await sort(strapi, tags, rows);
  result.unchanged += unchanged;
  if (fresh.length > 0) {
    try {
      const insert = () => insertContacts(strapi, tags, fresh);
      const taken = await inImportTransaction(strapi, insert);
      result.created += fresh.length - taken.length;
      single.push(...taken);
    } catch {
      // Also where the addresses are held for long: one by one, each waits for its own alone.
      single.push(...fresh);
    }
  }
  if (changed.length > 0) {
    try {
      const update = () => updateContacts(strapi, tags, changed, found);
      const done = await inImportTransaction(strapi, update);
      result.updated += done.updated;
      result.unchanged += done.unchanged;
      single.push(...done.left);
    } catch {
      single.push(...changed);
    }
  }
  const inOrder = single.sort((one, other) => one.line - other.line);
  await importEach(strapi, tags, inOrder, result);
};

/**
 * Imports some rows. New contacts go in together, known ones are changed together, and what a file
 * does not change costs no write. Should a transaction fail, or where a row needs more than the rows
 * of a table (an owner, a company), each goes by itself, so that a bad one never costs its
 * neighbours anything.
 */
export const importBatch = async (
  strapi: Core.Strapi,
  tags: ImportTags,
  rows: readonly ImportRow[]
): Promise<BatchResult> => {
  const result: BatchResult = { created: 0, updated: 0, unchanged: 0, failures: [] };
  // Before any transaction: a tag that is made for a row that then fails is still there.
  for (const row of rows) await tags.idsOf(row.tags);
  for (const round of roundsOf(rows)) await importRound(strapi, tags, round, result);
  return result;
};
