import { setTimeout as pause } from 'node:timers/promises';
import type { UID } from '@strapi/strapi';
import { withTransientRetry } from '../../database/retry';
import { inChunks } from '../../database/written-rows';
import { fieldError } from '../../http/validation';
import { giveWay, reasonOf, requireRowFault, throughFaults } from '../../imports/file-import';
import { type CrmWrite, inUnitOfWork } from '../capture';
import { emailKey, tryLockEmails } from '../contact-integrity';
import { readRows, serialize, tagsOf } from '../mapping/records';
import { getInspected, type WatchedSource } from '../mapping/sources';
import { createTag, tagsOfContact } from '../resources/crm-records';
import { keptInput, toData } from '../resources/to-data';
import { differences, upsertContact } from '../resources/upsert-contact';
import type { Payload } from '../rules';
import type { ImportRow } from './columns';
import type { App } from '../../app';

const CONTACT = 'plugin::switchboard.contact' as UID.ContentType;

/** Finds the tags that a file names, by slug or by name, and makes those that are not there. */
export class ImportTags {
  private readonly known = new Map<string, string>();
  private readonly rows = new Map<string, number>();
  private readonly watched: WatchedSource;

  constructor(private readonly app: App) {
    this.watched = getInspected(app, 'tag');
  }

  async idsOf(names: readonly string[]): Promise<string[]> {
    const ids: string[] = [];
    for (const name of names) ids.push(await this.idOf(name));
    return [...new Set(ids)];
  }

  /** @returns the ids of the rows of such tags; of the plugin's own. */
  async rowIdsOf(ids: readonly string[]): Promise<number[]> {
    const rowIds: number[] = [];
    for (const id of ids) {
      const cached = this.rows.get(id);
      const [row] = cached
        ? [{ id: cached }]
        : ((await this.app.strapi.db
            .queryBuilder(this.watched.uid)
            .init({ select: ['id'], where: { documentId: id }, limit: 1 })
            .execute()) as { id: number }[]);
      if (row) this.rows.set(id, row.id);
      if (row) rowIds.push(row.id);
    }
    return rowIds;
  }

  async add(tagId: string, documentId: string): Promise<void> {
    const { source, uid, draftAndPublish } = getInspected(this.app, 'contact');
    if (!source.tags) return;
    await this.app.strapi.documents(uid as UID.ContentType).update({
      documentId,
      data: { [source.tags]: { connect: [tagId] } },
      ...(draftAndPublish && { status: 'published' }),
    } as never);
  }

  private async find(name: string): Promise<string | null> {
    const attributes = this.watched.source.fields.flatMap(({ attribute }) => attribute ?? []);
    if (attributes.length === 0) return null;
    const where = { $or: attributes.map((attribute) => ({ [attribute]: { $eqi: name } })) };
    const [row] = await readRows(
      this.app,
      this.watched,
      where,
      { keys: null, tags: false },
      { limit: 1 }
    );
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

interface TagLink {
  rowId: number;
  documentId: string;
  tagIds: readonly string[];
  after: number;
}

/**
 * Links contacts to tags in the relation's own table: the host's `connect` renumbers all contacts of
 * a tag at each call, and a tag of an import may have all of them.
 */
const linkTags = async (
  write: CrmWrite,
  tags: ImportTags,
  links: readonly TagLink[]
): Promise<void> => {
  if (links.length === 0) return;
  const { app } = write;
  const { joinTable } = app.strapi.db.metadata.get(CONTACT).attributes.tags as unknown as {
    joinTable: JoinTable;
  };
  const rows: Record<string, unknown>[] = [];
  for (const { rowId, tagIds, after } of links) {
    const tagRows = await tags.rowIdsOf(tagIds);
    tagRows.forEach((tagRow, index) =>
      rows.push({
        [joinTable.joinColumn.name]: rowId,
        [joinTable.inverseJoinColumn.name]: tagRow,
        ...(joinTable.orderColumnName && { [joinTable.orderColumnName]: after + index + 1 }),
        ...(joinTable.inverseOrderColumnName && { [joinTable.inverseOrderColumnName]: rowId }),
      })
    );
  }
  const ids = links.map(({ documentId }) => documentId);
  await write.trackTagging(getInspected(app, 'contact'), ids);
  const db = await app.db.current();
  // SQLite limits the number of variables of one statement.
  for (const chunk of inChunks(rows)) {
    await db.table(joinTable.name).insert(chunk);
  }
};

/** Somebody holds an address: the transaction is to be run again in a moment. */
class AddressesHeldError extends Error {}

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

/** A contact that withdrew stays withdrawn: a list that is older than that must not subscribe them again. */
const WITHDRAWN = new Set<unknown>(['unsubscribed', 'bounced', 'complained']);

const inputForKnown = (row: ImportRow, contact: Payload): Record<string, unknown> => {
  const { status, ...input } = row.input;
  return status && !WITHDRAWN.has(contact.status) ? { ...input, status } : input;
};

/** True if lists hide a contact. */
const isInBin = ({ dates }: Payload): boolean =>
  Boolean((dates as { trashed_at?: unknown } | undefined)?.trashed_at);

/** Changes that need the relation's own table: the host's document service writes those. */
const isPlain = (changes: Readonly<Record<string, unknown>>): boolean =>
  !('company_id' in changes) && !('owner_id' in changes);

/** A contact's key: its address. */
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
 * does not change costs no write. If a transaction fails, or a row needs more than the rows of two tables
 * (an owner, a company), each row goes by itself, so that a bad one never costs its neighbours anything.
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

  /**
   * Makes the tags that rows name, before any transaction: one that is made for a row that then fails
   * is still there.
   * @returns the rows whose tags are there; the others have failed
   */
  private async prepareTags(rows: readonly ImportRow[]): Promise<ImportRow[]> {
    const prepared: ImportRow[] = [];
    for (const row of rows) {
      try {
        await throughFaults(this.app, () => this.tags.idsOf(row.tags));
        prepared.push(row);
      } catch (error) {
        // A caller's transaction may have ended with the error.
        if (this.app.db.inTransaction()) throw error;
        requireRowFault(error);
        this.result.failures.push({ row, message: `tags: ${reasonOf(error)}` });
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
   * @returns those that are left to be imported by themselves: all, where the transaction failed, also
   * where their addresses were held for long; by itself each row waits for its own address alone.
   */
  private async together(
    rows: readonly ImportRow[],
    work: () => Promise<Outcome>
  ): Promise<readonly ImportRow[]> {
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
   * Inserts contacts and their tags as one change, in one transaction that holds all their addresses
   * from its beginning: neither a form nor another import can make one of them meanwhile. A contact
   * that was made by somebody else just before is left alone.
   * @throws AddressesHeldError if somebody is at work with one of the addresses.
   */
  private insert(rows: readonly ImportRow[]): Promise<Outcome> {
    const { app, tags } = this;
    const { events, source, tagSource } = getInspected(app, 'contact');
    return inUnitOfWork(app, events, async (write) => {
      const emails = rows.map(({ email }) => email);
      if (!(await tryLockEmails(app, emails))) throw new AddressesHeldError();
      const taken = await this.stored(rows);
      const free = rows.filter((row) => !taken.has(keyOf(row)));
      const data: Record<string, unknown>[] = [];
      for (const { input } of free) {
        const kept = keptInput(app, source, { source: 'import', ...input });
        data.push(await toData(app, source, tagSource.uid, kept));
      }
      if (data.length > 0) await app.strapi.db.query(CONTACT).createMany({ data: data as never });
      const tagged = free.filter((row) => row.tags.length > 0);
      const stored = tagged.length > 0 ? await this.stored(tagged) : null;
      const links: TagLink[] = [];
      for (const row of tagged) {
        const contact = stored?.get(keyOf(row));
        if (contact) links.push({ ...contact, tagIds: await tags.idsOf(row.tags), after: 0 });
      }
      await linkTags(write, tags, links);
      return { created: free.length, left: rows.filter((row) => taken.has(keyOf(row))) };
    });
  }

  /**
   * Changes contacts that were found to be known, as one change in one transaction: what they are by
   * then decides, not what they were when they were found.
   * @param found of different addresses
   */
  private update(found: readonly Update[]): Promise<Outcome> {
    const { app, tags } = this;
    return inUnitOfWork(app, getInspected(app, 'contact').events, async (write) => {
      await this.lockContacts(found);
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
      const links = updates
        .filter(({ tagIds }) => tagIds.length > 0)
        .map(({ known: { rowId, contact, tagIds: present }, tagIds }) => ({
          ...{ rowId, documentId: contact.id, tagIds, after: present.size },
        }));
      await linkTags(write, tags, links);
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
        requireRowFault(error);
        this.result.failures.push({ row, message: reasonOf(error) });
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
    for (const id of missing) await tags.add(id, contact.id);
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
  private async stored(
    rows: readonly ImportRow[]
  ): Promise<Map<string, { rowId: number; documentId: string }>> {
    const found = (await this.app.strapi.db
      .queryBuilder(CONTACT)
      .init({
        select: ['id', 'documentId', 'email_key'],
        where: { email_key: { $in: rows.map(keyOf) } },
      })
      .execute()) as { id: number; documentId: string; email_key: string }[];
    return new Map(
      found.map(({ id, documentId, email_key: key }) => [key, { rowId: id, documentId }])
    );
  }

  private async readKnown(rows: readonly ImportRow[]): Promise<Map<string, KnownContact>> {
    const watched = getInspected(this.app, 'contact');
    const { source, tagSource } = watched;
    const where = { email_key: { $in: rows.map(keyOf) } };
    const found = await readRows(this.app, watched, where, {
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
  }

  /**
   * Nobody else changes these contacts until the transaction ends. In the order of their keys, as two
   * imports of the same list may do it at once; and as its first statement, since MySQL goes on
   * reading what was there when the transaction first read.
   */
  private async lockContacts(found: readonly Update[]): Promise<void> {
    const ids = found.map(({ known }) => known.rowId);
    await this.app.strapi.db
      .queryBuilder(CONTACT)
      .init({ select: ['id'], where: { id: { $in: ids } }, orderBy: { id: 'asc' } })
      .forUpdate()
      .execute();
  }

  /** One statement for all contacts that change in the same way, such as to the same stage. */
  private async writeChanges(updates: readonly Update[]): Promise<void> {
    const { app } = this;
    const { source, tagSource } = getInspected(app, 'contact');
    const groups = new Map<string, { ids: number[]; changes: Update['changes'] }>();
    for (const { known, changes } of updates) {
      const key = JSON.stringify(changes);
      const group = groups.get(key) ?? { ids: [], changes };
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
  }
}
