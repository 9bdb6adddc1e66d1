import type { Core } from '@strapi/strapi';
import { requireRowFault, throughFaults } from '../../imports/faults';
import { getInspected } from '../mapping/registry';
import { emailKey } from '../contact-integrity/email-key';
import type { ImportRow } from './columns';
import { type BatchResult, importEach, reasonOf } from './import-each';
import type { ImportTags } from './tags';
import { inImportTransaction } from './import-transaction';
import { insertContacts } from './insert-contacts';
import { changeOf, isInBin, type KnownContact, readKnown } from './known-contacts';
import { isPlain, updateContacts } from './update-contacts';

const keyOf = (row: ImportRow): string => emailKey(row.email) ?? '';

/** The n-th row of an address is in the n-th round: each sees what the one before it made. */
const roundsOf = (rows: readonly ImportRow[]): ImportRow[][] => {
  const rounds: ImportRow[][] = [];
  const seen = new Map<string, number>();
  for (const row of rows) {
    const round = seen.get(keyOf(row)) ?? 0;
    seen.set(keyOf(row), round + 1);
    (rounds[round] ??= []).push(row);
  }
  return rounds;
};

/** How a row is imported. `single`: by itself, as it needs more than the rows of two tables. */
type Way = 'insert' | 'update' | 'unchanged' | 'single';

const wayOf = async (
  tags: ImportTags,
  row: ImportRow,
  known: KnownContact | undefined
): Promise<Way> => {
  if (!known) return isPlain(row.input) ? 'insert' : 'single';
  if (isInBin(known.contact)) return 'single';
  const change = await changeOf(tags, row, known);
  if (!change) return 'unchanged';
  return isPlain(change.changes) ? 'update' : 'single';
};

/** Whether a row's contact, and its tags where it has some, are in the plugin's own types. */
const isOwn = (strapi: Core.Strapi, row: ImportRow): boolean => {
  const { source, tagSource } = getInspected(strapi, 'contact');
  const takesTags = tagSource.own && source.tags !== null;
  return source.own && (row.tags.length === 0 || takesTags);
};

interface SortedRows extends Record<Way, ImportRow[]> {
  /** The contacts of the rows to update, by the key of their address. */
  toUpdate: Map<string, KnownContact>;
}

const sortRows = async (
  strapi: Core.Strapi,
  tags: ImportTags,
  rows: readonly ImportRow[]
): Promise<SortedRows> => {
  const own = rows.filter((row) => isOwn(strapi, row));
  const single = rows.filter((row) => !isOwn(strapi, row));
  const toUpdate = new Map<string, KnownContact>();
  const sorted: SortedRows = { insert: [], update: [], unchanged: [], single, toUpdate };
  if (own.length === 0) return sorted;

  const contacts = await readKnown(strapi, own);
  for (const row of own) {
    const known = contacts.get(keyOf(row));
    const way = await wayOf(tags, row, known);
    sorted[way].push(row);
    if (way === 'update' && known) toUpdate.set(keyOf(row), known);
  }
  return sorted;
};

/**
 * Inserts rows in one transaction.
 * @returns those that are left to be imported by themselves: all, where the transaction failed, also
 * where their addresses were held for long; by itself each row waits for its own address alone.
 */
const insertTogether = async (
  strapi: Core.Strapi,
  tags: ImportTags,
  rows: ImportRow[],
  result: BatchResult
): Promise<ImportRow[]> => {
  if (rows.length === 0) return [];
  try {
    const taken = await inImportTransaction(strapi, () => insertContacts(strapi, tags, rows));
    result.created += rows.length - taken.length;
    return taken;
  } catch {
    return rows;
  }
};

/** Updates contacts in one transaction. @returns the rows that are left, as `insertTogether` does. */
const updateTogether = async (
  strapi: Core.Strapi,
  tags: ImportTags,
  { update: rows, toUpdate }: SortedRows,
  result: BatchResult
): Promise<ImportRow[]> => {
  if (rows.length === 0) return [];
  try {
    const { updated, unchanged, left } = await inImportTransaction(strapi, () =>
      updateContacts(strapi, tags, rows, toUpdate)
    );
    result.updated += updated;
    result.unchanged += unchanged;
    return left;
  } catch {
    return rows;
  }
};

/** @param rows of different addresses */
const importRound = async (
  strapi: Core.Strapi,
  tags: ImportTags,
  rows: readonly ImportRow[],
  result: BatchResult
): Promise<void> => {
  const sorted = await sortRows(strapi, tags, rows);
  result.unchanged += sorted.unchanged.length;
  const notInserted = await insertTogether(strapi, tags, sorted.insert, result);
  const notUpdated = await updateTogether(strapi, tags, sorted, result);
  const left = [...sorted.single, ...notInserted, ...notUpdated];
  left.sort((one, other) => one.line - other.line);
  await importEach(strapi, tags, left, result);
};

/**
 * Makes the tags that rows name, before any transaction: one that is made for a row that then fails
 * is still there.
 * @returns the rows whose tags are there; the others have failed
 */
const prepareTags = async (
  strapi: Core.Strapi,
  tags: ImportTags,
  rows: readonly ImportRow[],
  result: BatchResult
): Promise<ImportRow[]> => {
  const prepared: ImportRow[] = [];
  for (const row of rows) {
    try {
      await throughFaults(strapi, () => tags.idsOf(row.tags));
      prepared.push(row);
    } catch (error) {
      // A caller's transaction may have ended with the error.
      if (strapi.db.inTransaction()) throw error;
      requireRowFault(error);
      result.failures.push({ row, message: `tags: ${reasonOf(error)}` });
    }
  }
  return prepared;
};

/**
 * Imports some rows. New contacts are inserted together, known ones are updated together, and what a
 * file does not change costs no write. Where a transaction fails, or a row needs more than the rows of
 * two tables (an owner, a company), each row goes by itself, so that a bad one never costs its
 * neighbours anything.
 */
export const importBatch = async (
  strapi: Core.Strapi,
  tags: ImportTags,
  rows: readonly ImportRow[]
): Promise<BatchResult> => {
  const result: BatchResult = { created: 0, updated: 0, unchanged: 0, failures: [] };
  const prepared = await prepareTags(strapi, tags, rows, result);
  for (const round of roundsOf(prepared)) await importRound(strapi, tags, round, result);
  return result;
};
