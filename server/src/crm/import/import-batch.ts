import { setTimeout as pause } from 'node:timers/promises';
import type { UID } from '@strapi/strapi';
import { errors } from '@strapi/utils';
import { withTransientRetry } from '../../database/retry';
import { fieldError } from '../../http/validation';
import { giveWay, requireRowFault, throughFaults } from '../../imports/rows';
import { errorText } from '../../runtime/text';
import { inUnitOfWork } from '../capture/capture';
import { emailKey, tryLockEmails } from '../contact-integrity';
import { readRows, serialize, tagsOf } from '../mapping/records';
import { getInspected } from '../mapping/sources';
import { tagsOfContact } from '../resources/crm-records';
import { keptInput, toData } from '../resources/to-data';
import { differences, upsertContact } from '../resources/upsert-contact';
import type { Payload } from '../rules';
import type { ImportRow } from './columns';
import { type ImportTags, linkTags, type TagLink } from './tags';
import type { App } from '../../app';

const CONTACT = 'plugin::switchboard.contact' as UID.ContentType;

/** Somebody holds an address: the transaction is to be run again in a moment. */
class AddressesHeldError extends Error {}

interface Stored {
  id: number;
  documentId: string;
  email_key: string;
}

const storedRows = async (app: App, rows: readonly ImportRow[]): Promise<Map<string, Stored>> => {
  const where = { email_key: { $in: rows.map(({ email }) => emailKey(email)) } };
  const found = (await app.strapi.db
    .queryBuilder(CONTACT)
    .init({ select: ['id', 'documentId', 'email_key'], where })
    .execute()) as Stored[];
  return new Map(found.map((row) => [row.email_key, row]));
};

const linksOf = async (
  tags: ImportTags,
  rows: readonly ImportRow[],
  stored: ReadonlyMap<string, Stored>
): Promise<TagLink[]> => {
  const links: TagLink[] = [];
  for (const row of rows) {
    const contact = stored.get(emailKey(row.email) ?? '');
    if (!contact) continue;
    const { id: rowId, documentId } = contact;
    links.push({ rowId, documentId, tagIds: await tags.idsOf(row.tags), after: 0 });
  }
  return links;
};

/**
 * Inserts contacts and their tags as one change, in one transaction that holds all their addresses
 * from its beginning: neither a form nor another import can make one of them meanwhile.
 * @param rows of different addresses, without an owner or a company
 * @returns the rows whose contact was made by somebody else just before; they are left alone.
 * @throws AddressesHeldError where somebody is at work with one of the addresses.
 */
const insertContacts = (
  app: App,
  tags: ImportTags,
  rows: readonly ImportRow[]
): Promise<ImportRow[]> =>
  inUnitOfWork(app, getInspected(app, 'contact').events, async (write) => {
    const emails = rows.map(({ email }) => email);
    if (!(await tryLockEmails(app, emails))) throw new AddressesHeldError();
    const taken = await storedRows(app, rows);
    const isFree = ({ email }: ImportRow): boolean => !taken.has(emailKey(email) ?? '');
    const free = rows.filter(isFree);
    const { source, tagSource } = getInspected(app, 'contact');
    const data: Record<string, unknown>[] = [];
    for (const { input } of free) {
      const kept = keptInput(app, source, { source: 'import', ...input });
      data.push(await toData(app, source, tagSource.uid, kept));
    }
    if (data.length > 0) await app.strapi.db.query(CONTACT).createMany({ data: data as never });
    const tagged = free.filter((row) => row.tags.length > 0);
    if (tagged.length > 0) {
      const stored = await storedRows(app, tagged);
      await linkTags(write, tags, await linksOf(tags, tagged, stored));
    }
    return rows.filter((row) => !isFree(row));
  });

/** How often held addresses are tried again; together about half a second. */
const TRIES = 20;
const PAUSE_MS = 50;

const withPatience = async <T>(work: () => Promise<T>): Promise<T> => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (attempt >= TRIES || !(error instanceof AddressesHeldError)) throw error;
      await pause(PAUSE_MS * Math.random());
    }
  }
};

/**
 * One transaction of the import's own, run again where somebody holds an address that it needs, or
 * where the database chose it as a deadlock's victim. Within a caller's transaction nothing can be
 * run again; what fails there is undone, so that the rest of it can go on.
 */
const inImportTransaction = <T>(app: App, work: () => Promise<T>): Promise<T> =>
  app.db.inTransaction()
    ? app.db.savepoint(work)
    : withPatience(() => withTransientRetry(() => app.db.transaction(work)));

/** A contact that an address of the file belongs to. */
interface KnownContact {
  rowId: number;
  contact: Payload;
  tagIds: ReadonlySet<string>;
}

/** What a row would make of a contact. */
interface RowChange {
  /** As REST takes a contact. */
  changes: Record<string, unknown>;
  /** Tags that it does not have yet. */
  tagIds: string[];
}

/** Who withdrew stays withdrawn: a list that is older than that must not subscribe them again. */
const WITHDRAWN = new Set<unknown>(['unsubscribed', 'bounced', 'complained']);

/** What a row says of a contact that exists. */
const inputForKnown = (row: ImportRow, contact: Payload): Record<string, unknown> => {
  const { status, ...input } = row.input;
  return status && !WITHDRAWN.has(contact.status) ? { ...input, status } : input;
};

/** Whether lists hide a contact. */
const isInBin = ({ dates }: Payload): boolean =>
  Boolean((dates as { trashed_at?: unknown } | undefined)?.trashed_at);

/** The plugin's own contacts of these rows, by the key of their address, in one reading. */
const readKnown = async (
  app: App,
  rows: readonly ImportRow[]
): Promise<Map<string, KnownContact>> => {
  const watched = getInspected(app, 'contact');
  const { source, tagSource } = watched;
  const where = { email_key: { $in: rows.map(({ email }) => emailKey(email)) } };
  const found = await readRows(app, watched, where, {
    // Relations that no row of the file names are not loaded.
    keys: new Set(rows.flatMap(({ input }) => Object.keys(input))),
    tags: rows.some(({ tags }) => tags.length > 0),
  });
  return new Map(
    found.map((row) => [
      String(row.email_key),
      {
        rowId: Number(row.id),
        contact: serialize(source, row),
        tagIds: new Set(tagsOf(source, tagSource, row).map(({ id }) => id)),
      },
    ])
  );
};

/** @returns null where the row says nothing new of the contact. */
const changeOf = async (
  tags: ImportTags,
  row: ImportRow,
  known: KnownContact
): Promise<RowChange | null> => {
  const changes = differences(known.contact, inputForKnown(row, known.contact));
  const tagIds = (await tags.idsOf(row.tags)).filter((id) => !known.tagIds.has(id));
  return Object.keys(changes).length > 0 || tagIds.length > 0 ? { changes, tagIds } : null;
};

/** What became of some rows. */
export interface BatchResult {
  created: number;
  updated: number;
  unchanged: number;
  failures: { row: ImportRow; message: string }[];
}

const importOne = async (
  app: App,
  tags: ImportTags,
  row: ImportRow
): Promise<'created' | 'updated' | 'unchanged'> => {
  const { contact, created, changed } = await upsertContact(
    app,
    { ...row.input, email: row.email },
    {
      onlyNew: { source: 'import' },
      forKnown: (known) => {
        // Whoever imports a list would look for it in vain.
        if (isInBin(known)) throw fieldError('email', 'belongs to a contact that is in the bin');
        return inputForKnown(row, known);
      },
    }
  );
  const ids = await tags.idsOf(row.tags);
  const present = ids.length > 0 ? await tagsOfContact(app, contact.id) : [];
  const missing = ids.filter((id) => !present.some((tag) => tag.id === id));
  for (const id of missing) await tags.add(id, [contact.id]);
  if (created) return 'created';
  return changed || missing.length > 0 ? 'updated' : 'unchanged';
};

/** Why a row could not be imported, without what a driver says. */
export const reasonOf = (error: unknown): string =>
  error instanceof errors.ApplicationError ? error.message : errorText(error);

/** Imports rows one by one, each in a transaction of its own. */
const importEach = async (
  app: App,
  tags: ImportTags,
  rows: readonly ImportRow[],
  result: BatchResult
): Promise<void> => {
  for (const row of rows) {
    try {
      const outcome = await throughFaults(app, () =>
        inImportTransaction(app, () => importOne(app, tags, row))
      );
      result[outcome] += 1;
    } catch (error) {
      requireRowFault(error);
      result.failures.push({ row, message: reasonOf(error) });
    }
    await giveWay();
  }
};

interface UpdateResult {
  updated: number;
  unchanged: number;
  /** Rows whose contact is gone, or that would change more than its own row and its tags. */
  left: ImportRow[];
}

/** Changes that need the relation's own table: the host's document service writes those. */
const isPlain = (changes: Readonly<Record<string, unknown>>): boolean =>
  !('company_id' in changes) && !('owner_id' in changes);

/**
 * Nobody else changes these contacts until the transaction ends. In the order of their keys, as two
 * imports of the same list may do it at once; and as its first statement, since MySQL goes on
 * reading what was there when the transaction first read.
 */
const lockContacts = async (app: App, known: ReadonlyMap<string, KnownContact>): Promise<void> => {
  const ids = [...known.values()].map(({ rowId }) => rowId);
  await app.strapi.db
    .queryBuilder(CONTACT)
    .init({ select: ['id'], where: { id: { $in: ids } }, orderBy: { id: 'asc' } })
    .forUpdate()
    .execute();
};

interface Update {
  known: KnownContact;
  change: RowChange;
}

/** One statement for all contacts that change in the same way, such as to the same stage. */
const writeChanges = async (app: App, updates: readonly Update[]): Promise<void> => {
  const { source, tagSource } = getInspected(app, 'contact');
  const groups = new Map<string, { ids: number[]; changes: RowChange['changes'] }>();
  for (const { known, change } of updates) {
    const key = JSON.stringify(change.changes);
    const group = groups.get(key) ?? { ids: [], changes: change.changes };
    group.ids.push(known.rowId);
    groups.set(key, group);
  }
  for (const { ids, changes } of groups.values()) {
    const data = await toData(app, source, tagSource.uid, changes);
    const where = { id: ids.length === 1 ? ids[0] : { $in: ids } };
    // The host dates an update of many only where it is given a list.
    const dated = { ...data, updatedAt: new Date() };
    await app.strapi.db.query(CONTACT).updateMany({ where, data: dated as never });
  }
};

/**
 * Changes contacts that were found to be known, as one change in one transaction: what they are by
 * then decides, not what they were when they were found.
 * @param rows of different addresses
 */
const updateContacts = (
  app: App,
  tags: ImportTags,
  rows: readonly ImportRow[],
  found: ReadonlyMap<string, KnownContact>
): Promise<UpdateResult> =>
  inUnitOfWork(app, getInspected(app, 'contact').events, async (write) => {
    await lockContacts(app, found);
    const current = await readKnown(app, rows);
    const updates: Update[] = [];
    const left: ImportRow[] = [];
    for (const row of rows) {
      const key = emailKey(row.email) ?? '';
      const known = current.get(key);
      const change = known && (await changeOf(tags, row, known));
      const isLocked = known && known.rowId === found.get(key)?.rowId;
      const isLeft = known !== undefined && isInBin(known.contact);
      if (!isLocked || isLeft || (change && !isPlain(change.changes))) left.push(row);
      else if (change) updates.push({ known, change });
    }
    await writeChanges(app, updates);
    const links = updates
      .filter(({ change }) => change.tagIds.length > 0)
      .map(({ known, change }) => ({
        rowId: known.rowId,
        documentId: known.contact.id,
        tagIds: change.tagIds,
        after: known.tagIds.size,
      }));
    await linkTags(write, tags, links);
    const unchanged = rows.length - left.length - updates.length;
    return { updated: updates.length, unchanged, left };
  });

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
const isOwn = (app: App, row: ImportRow): boolean => {
  const { source, tagSource } = getInspected(app, 'contact');
  const takesTags = tagSource.own && source.tags !== null;
  return source.own && (row.tags.length === 0 || takesTags);
};

interface SortedRows extends Record<Way, ImportRow[]> {
  /** The contacts of the rows to update, by the key of their address. */
  toUpdate: Map<string, KnownContact>;
}

const sortRows = async (
  app: App,
  tags: ImportTags,
  rows: readonly ImportRow[]
): Promise<SortedRows> => {
  const own = rows.filter((row) => isOwn(app, row));
  const single = rows.filter((row) => !isOwn(app, row));
  const toUpdate = new Map<string, KnownContact>();
  const sorted: SortedRows = { insert: [], update: [], unchanged: [], single, toUpdate };
  if (own.length === 0) return sorted;

  const contacts = await readKnown(app, own);
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
  app: App,
  tags: ImportTags,
  rows: ImportRow[],
  result: BatchResult
): Promise<ImportRow[]> => {
  if (rows.length === 0) return [];
  try {
    const taken = await inImportTransaction(app, () => insertContacts(app, tags, rows));
    result.created += rows.length - taken.length;
    return taken;
  } catch {
    return rows;
  }
};

/** Updates contacts in one transaction. @returns the rows that are left, as `insertTogether` does. */
const updateTogether = async (
  app: App,
  tags: ImportTags,
  { update: rows, toUpdate }: SortedRows,
  result: BatchResult
): Promise<ImportRow[]> => {
  if (rows.length === 0) return [];
  try {
    const { updated, unchanged, left } = await inImportTransaction(app, () =>
      updateContacts(app, tags, rows, toUpdate)
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
  app: App,
  tags: ImportTags,
  rows: readonly ImportRow[],
  result: BatchResult
): Promise<void> => {
  const sorted = await sortRows(app, tags, rows);
  result.unchanged += sorted.unchanged.length;
  const notInserted = await insertTogether(app, tags, sorted.insert, result);
  const notUpdated = await updateTogether(app, tags, sorted, result);
  const left = [...sorted.single, ...notInserted, ...notUpdated];
  left.sort((one, other) => one.line - other.line);
  await importEach(app, tags, left, result);
};

/**
 * Makes the tags that rows name, before any transaction: one that is made for a row that then fails
 * is still there.
 * @returns the rows whose tags are there; the others have failed
 */
const prepareTags = async (
  app: App,
  tags: ImportTags,
  rows: readonly ImportRow[],
  result: BatchResult
): Promise<ImportRow[]> => {
  const prepared: ImportRow[] = [];
  for (const row of rows) {
    try {
      await throughFaults(app, () => tags.idsOf(row.tags));
      prepared.push(row);
    } catch (error) {
      // A caller's transaction may have ended with the error.
      if (app.db.inTransaction()) throw error;
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
  app: App,
  tags: ImportTags,
  rows: readonly ImportRow[]
): Promise<BatchResult> => {
  const result: BatchResult = { created: 0, updated: 0, unchanged: 0, failures: [] };
  const prepared = await prepareTags(app, tags, rows, result);
  for (const round of roundsOf(prepared)) await importRound(app, tags, round, result);
  return result;
};
