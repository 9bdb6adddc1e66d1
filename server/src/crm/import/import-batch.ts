import { setTimeout as pause } from 'node:timers/promises';
import type { UID } from '@strapi/strapi';
import { findInChunks, inChunks } from '../../database/written-rows';
import { fieldError } from '../../http/validation';
import { giveWay, rowFault, throughFaults } from '../../imports/file-import';
import { type CrmWrite, inUnitOfWork } from '../capture';
import { emailKey, lockEmails } from '../contact-integrity';
import { type Entry, getInspected, type WatchedSource } from '../mapping/sources';
import { lockRows, readRows, selectRows, serialize, tagsOf } from '../mapping/records';
import { createTag, crmRecords, tagsOfContact } from '../resources/crm-records';
import { keptInput, toData } from '../resources/to-data';
import { differences, upsertContact } from '../resources/upsert-contact';
import type { Payload } from '../rules';
import type { App } from '../../app';

const CONTACT = 'plugin::switchboard.contact' as UID.ContentType;

export interface ImportRow {
  line: number;
  email: string;
  /** As REST takes a contact, without what the file leaves empty. */
  input: Record<string, unknown>;
  tags: string[];
}

/** Finds the tags that a file names, by slug or by name, and makes those that are not there. */
export class ImportTags {
  private readonly known = new Map<string, string>();
  private readonly watched: WatchedSource;

  constructor(private readonly app: App) {
    this.watched = getInspected(app, 'tag');
  }

  async idsOf(names: readonly string[]): Promise<string[]> {
    const ids: string[] = [];
    for (const name of names) ids.push(await this.idOf(name));
    return [...new Set(ids)];
  }

  private async find(name: string): Promise<string | null> {
    const attributes = this.watched.source.fields.flatMap(({ attribute }) => attribute ?? []);
    if (attributes.length === 0) return null;
    const where = { $or: attributes.map((attribute) => ({ [attribute]: { $eqi: name } })) };
    const reading = { keys: null, tags: false };
    const [row] = await readRows(this.app, this.watched, where, reading, { limit: 1 });
    return row ? serialize(this.watched.source, row).id : null;
  }

  private async idOf(name: string): Promise<string> {
    const key = name.toLowerCase();
    const cached = this.known.get(key);
    if (cached) return cached;
    const found = await this.find(name);
    const id = found ?? (await createTag(this.app, { name }, () => this.find(name))).id;
    this.known.set(key, id);
    return id;
  }
}

interface JoinTable {
  name: string;
  joinColumn: { name: string };
  inverseJoinColumn: { name: string };
  orderColumnName?: string;
  inverseOrderColumnName?: string;
}

/** Tags of a contact that come after so many others. */
interface TagLink {
  rowId: number;
  documentId: string;
  tagIds: readonly string[];
  after: number;
}

/** Links contacts to tags in the relation's own table: `connect` renumbers all contacts of a tag each time. */
const linkTags = async (write: CrmWrite, links: readonly TagLink[]): Promise<void> => {
  if (links.length === 0) return;
  const { app } = write;
  const contacts = getInspected(app, 'contact');
  const { joinTable } = app.strapi.db.metadata.get(CONTACT).attributes.tags as unknown as {
    joinTable: JoinTable;
  };
  const named = links.flatMap(({ tagIds }) => tagIds);
  const tags = await findInChunks<{ id: number; documentId: string }, string>(named, (some) =>
    selectRows(app, contacts.tagSource.uid, {
      select: ['id', 'documentId'],
      where: { documentId: { $in: some } },
    })
  );
  const tagRows = new Map(tags.map(({ id, documentId }) => [documentId, id]));
  const rows = links.flatMap(({ rowId, tagIds, after }) =>
    tagIds
      .flatMap((id) => tagRows.get(id) ?? [])
      .map((tagRow, index) => ({
        [joinTable.joinColumn.name]: rowId,
        [joinTable.inverseJoinColumn.name]: tagRow,
        ...(joinTable.orderColumnName && { [joinTable.orderColumnName]: after + index + 1 }),
        ...(joinTable.inverseOrderColumnName && { [joinTable.inverseOrderColumnName]: rowId }),
      }))
  );
  const ids = links.map(({ documentId }) => documentId);
  await write.trackTagging(contacts, ids);
  const db = await app.db.current();
  // SQLite limits the number of variables of one statement.
  for (const chunk of inChunks(rows)) await db.table(joinTable.name).insert(chunk);
};

/** Somebody holds an address: the transaction is to be run again in a moment. */
class AddressesHeldError extends Error {}

/** How often held addresses are tried again; together about half a second. */
const TRIES = 20;
const PAUSE_MS = 50;

/**
 * One transaction of the import's own, run again if somebody holds an address that it needs, or if it was a
 * deadlock's victim. Within a caller's transaction nothing can be run again; what fails there is undone.
 */
const inImportTransaction = async <T>(app: App, work: () => Promise<T>): Promise<T> => {
  if (app.db.inTransaction()) return app.db.savepoint(work);
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await app.db.retrying(work);
    } catch (error) {
      if (attempt >= TRIES || !(error instanceof AddressesHeldError)) throw error;
      await pause(PAUSE_MS * Math.random());
    }
  }
};

/** A contact that withdrew stays withdrawn: a list that is older than that must not subscribe them again. */
const WITHDRAWN = new Set<unknown>(['unsubscribed', 'bounced', 'complained']);

const inputForKnown = (row: ImportRow, contact: Payload): Record<string, unknown> => {
  const { status, ...input } = row.input;
  return status && !WITHDRAWN.has(contact.status) ? { ...input, status } : input;
};

const isInBin = ({ dates }: Payload): boolean =>
  Boolean((dates as { trashed_at?: unknown } | undefined)?.trashed_at);

/** Changes that need the relation's own table: the host's document service writes those. */
const isPlain = (changes: Readonly<Record<string, unknown>>): boolean =>
  !('company_id' in changes) && !('owner_id' in changes);

const keyOf = ({ email }: ImportRow): string => emailKey(email) ?? '';

interface KnownContact {
  rowId: number;
  contact: Payload;
  tagIds: ReadonlySet<string>;
}

interface Update {
  row: ImportRow;
  known: KnownContact;
  changes: Record<string, unknown>;
  tagIds: string[];
}

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

export interface BatchResult {
  created: number;
  updated: number;
  unchanged: number;
  failures: { row: ImportRow; message: string }[];
}

type Counts = Partial<Omit<BatchResult, 'failures'>>;

interface Outcome extends Counts {
  /** Rows to be imported by themselves: what is theirs was not written. */
  left: ImportRow[];
}

/**
 * Imports some rows. New contacts are inserted together, known ones are updated together, and what a file
 * does not change costs no write. If a transaction fails, or rows need more than two tables (an owner, a
 * company), each row goes by itself, so that a bad one never costs its neighbours anything.
 */
export class ContactBatch {
  readonly result: BatchResult = { created: 0, updated: 0, unchanged: 0, failures: [] };

  constructor(
    private readonly app: App,
    private readonly tags: ImportTags
  ) {}

  async import(rows: readonly ImportRow[]): Promise<BatchResult> {
    const prepared = await this.prepareTags(rows);
    for (const round of roundsOf(prepared)) await this.importRound(round);
    return this.result;
  }

  /** Makes the tags that rows name, before any transaction. @returns the rows whose tags are there */
  private async prepareTags(rows: readonly ImportRow[]): Promise<ImportRow[]> {
    const prepared: ImportRow[] = [];
    for (const row of rows) {
      try {
        await throughFaults(this.app, () => this.tags.idsOf(row.tags));
        prepared.push(row);
      } catch (error) {
        // A caller's transaction may have ended with the error.
        if (this.app.db.inTransaction()) throw error;
        this.result.failures.push({ row, message: `tags: ${rowFault(error)}` });
      }
    }
    return prepared;
  }

  /** @param rows of different addresses */
  private async importRound(rows: readonly ImportRow[]): Promise<void> {
    const own = rows.filter((row) => this.isOwn(row));
    const left = rows.filter((row) => !this.isOwn(row));
    const fresh: ImportRow[] = [];
    const updates: Update[] = [];
    const contacts = own.length > 0 ? await this.readKnown(own) : new Map<string, KnownContact>();
    for (const row of own) {
      const known = contacts.get(keyOf(row));
      const update = known && (await this.updateOf(row, known));
      if (!known) (isPlain(row.input) ? fresh : left).push(row);
      else if (isInBin(known.contact)) left.push(row);
      else if (!update) this.result.unchanged += 1;
      else if (isPlain(update.changes)) updates.push(update);
      else left.push(row);
    }
    left.push(...(await this.together(fresh, () => this.insert(fresh))));
    const known = updates.map(({ row }) => row);
    left.push(...(await this.together(known, () => this.update(updates))));
    await this.importEach(left.sort((one, other) => one.line - other.line));
  }

  /** True if a row's contact, and its tags where it has some, are in the plugin's own types. */
  private isOwn(row: ImportRow): boolean {
    const { source, tagSource } = getInspected(this.app, 'contact');
    const takesTags = tagSource.own && source.tags !== null;
    return source.own && (row.tags.length === 0 || takesTags);
  }

  /**
   * Writes rows in one transaction.
   * @returns those that are left to be imported by themselves: all, if the transaction failed or addresses were
   * held for long; by itself each row waits for its own address alone
   */
  private async together(rows: readonly ImportRow[], work: () => Promise<Outcome>) {
    if (rows.length === 0) return [];
    try {
      const { left, ...counts } = await inImportTransaction(this.app, work);
      for (const [name, count] of Object.entries(counts)) {
        this.result[name as keyof Counts] += count;
      }
      return left;
    } catch {
      return rows;
    }
  }

  /**
   * Inserts contacts and their tags as one change, in one transaction that holds all their addresses from
   * its beginning. A contact that was made by somebody else just before is left alone.
   * @throws AddressesHeldError if somebody is at work with one of the addresses.
   */
  private insert(rows: readonly ImportRow[]): Promise<Outcome> {
    const { app, tags } = this;
    const watched = getInspected(app, 'contact');
    return inUnitOfWork(app, watched.events, async (write) => {
      const emails = rows.map(({ email }) => email);
      if (!(await lockEmails(app, emails, 'skip'))) throw new AddressesHeldError();
      const taken = await this.stored(rows);
      const free = rows.filter((row) => !taken.has(keyOf(row)));
      const data: Record<string, unknown>[] = [];
      for (const { input } of free) {
        const kept = keptInput(app, watched.source, { source: 'import', ...input });
        data.push(await toData(app, watched, kept));
      }
      if (data.length > 0) await app.strapi.db.query(CONTACT).createMany({ data: data as never });
      const tagged = free.filter((row) => row.tags.length > 0);
      const stored = tagged.length > 0 ? await this.stored(tagged) : null;
      const links: TagLink[] = [];
      for (const row of tagged) {
        const contact = stored?.get(keyOf(row));
        if (contact) links.push({ ...contact, tagIds: await tags.idsOf(row.tags), after: 0 });
      }
      await linkTags(write, links);
      return { created: free.length, left: rows.filter((row) => taken.has(keyOf(row))) };
    });
  }

  /** Changes known contacts of different addresses in one transaction, by what they are by then. */
  private update(found: readonly Update[]): Promise<Outcome> {
    const { app } = this;
    return inUnitOfWork(app, getInspected(app, 'contact').events, async (write) => {
      // The first statement: MySQL goes on reading what was there when the transaction first read.
      await lockRows(app, CONTACT, { id: { $in: found.map(({ known }) => known.rowId) } });
      const current = await this.readKnown(found.map(({ row }) => row));
      const updates: Update[] = [];
      const left: ImportRow[] = [];
      for (const { row, known: before } of found) {
        const known = current.get(keyOf(row));
        const isLocked = known?.rowId === before.rowId;
        const update = known && (await this.updateOf(row, known));
        const isLeft = !known || !isLocked || isInBin(known.contact);
        if (isLeft || (update && !isPlain(update.changes))) left.push(row);
        else if (update) updates.push(update);
      }
      await this.writeChanges(updates);
      const tagged = updates.filter(({ tagIds }) => tagIds.length > 0);
      const links = tagged.map(({ known: { rowId, contact, tagIds: present }, tagIds }) => ({
        rowId,
        documentId: contact.id,
        tagIds,
        after: present.size,
      }));
      await linkTags(write, links);
      const unchanged = found.length - left.length - updates.length;
      return { updated: updates.length, unchanged, left };
    });
  }

  /** Imports rows one by one, each in a transaction of its own. */
  private async importEach(rows: readonly ImportRow[]): Promise<void> {
    for (const row of rows) {
      try {
        const outcome = await throughFaults(this.app, () =>
          inImportTransaction(this.app, () => this.importOne(row))
        );
        this.result[outcome] += 1;
      } catch (error) {
        this.result.failures.push({ row, message: rowFault(error) });
      }
      await giveWay();
    }
  }

  private async importOne(row: ImportRow): Promise<keyof Counts> {
    const { app, tags } = this;
    const input = { ...row.input, email: row.email };
    const { contact, created, changed } = await upsertContact(app, input, {
      onlyNew: { source: 'import' },
      forKnown: (known) => {
        // An imported contact in the bin would not show up in any list.
        if (isInBin(known)) throw fieldError('email', 'belongs to a contact that is in the bin');
        return inputForKnown(row, known);
      },
    });
    const ids = await tags.idsOf(row.tags);
    const present = ids.length > 0 ? await tagsOfContact(app, contact.id) : [];
    const missing = ids.filter((id) => !present.some((tag) => tag.id === id));
    for (const id of missing) await crmRecords(app, 'contact').changeTag(contact.id, id, 'connect');
    if (created) return 'created';
    return changed || missing.length > 0 ? 'updated' : 'unchanged';
  }

  /** @returns null if the row says nothing new of the contact. */
  private async updateOf(row: ImportRow, known: KnownContact): Promise<Update | null> {
    const changes = differences(known.contact, inputForKnown(row, known.contact));
    const tagIds = (await this.tags.idsOf(row.tags)).filter((id) => !known.tagIds.has(id));
    const isNew = Object.keys(changes).length > 0 || tagIds.length > 0;
    return isNew ? { row, known, changes, tagIds } : null;
  }

  /** The contacts of these rows that are there, by the key of their address. */
  private async stored(rows: readonly ImportRow[]) {
    const where = { email_key: { $in: rows.map(keyOf) } };
    const found = await selectRows<{ id: number; documentId: string; email_key: string }>(
      this.app,
      CONTACT,
      { select: ['id', 'documentId', 'email_key'], where }
    );
    return new Map(
      found.map(({ id, documentId, email_key: key }) => [key, { rowId: id, documentId }])
    );
  }

  private async readKnown(rows: readonly ImportRow[]): Promise<Map<string, KnownContact>> {
    const watched = getInspected(this.app, 'contact');
    const where = { email_key: { $in: rows.map(keyOf) } };
    const found = await readRows(this.app, watched, where, {
      // Relations that no row of the file names are not loaded.
      keys: new Set(rows.flatMap(({ input }) => Object.keys(input))),
      tags: rows.some(({ tags }) => tags.length > 0),
    });
    const knownOf = (row: Entry): KnownContact => ({
      rowId: Number(row.id),
      contact: serialize(watched.source, row),
      tagIds: new Set(tagsOf(watched, row).map(({ id }) => id)),
    });
    return new Map(found.map((row) => [String(row.email_key), knownOf(row)]));
  }

  /** One statement for all contacts that change in the same way, such as to the same stage. */
  private async writeChanges(updates: readonly Update[]): Promise<void> {
    const { app } = this;
    const groups = new Map<string, { ids: number[]; changes: Update['changes'] }>();
    for (const { known, changes } of updates) {
      const key = JSON.stringify(changes);
      const group = groups.get(key) ?? { ids: [], changes };
      group.ids.push(known.rowId);
      groups.set(key, group);
    }
    for (const { ids, changes } of groups.values()) {
      const data = await toData(app, getInspected(app, 'contact'), changes);
      const where = { id: ids.length === 1 ? ids[0] : { $in: ids } };
      // The host dates an update of many only where it is given a list.
      const dated = { ...data, updatedAt: new Date() };
      await app.strapi.db.query(CONTACT).updateMany({ where, data: dated as never });
    }
  }
}
