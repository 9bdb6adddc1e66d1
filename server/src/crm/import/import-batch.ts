import { setTimeout as pause } from 'node:timers/promises';
import type { UID } from '@strapi/strapi';
import { errors } from '@strapi/utils';
import { findInChunks, inChunks } from '../../database/written-rows';
import { fieldError } from '../../http/validation';
import { giveWay, rowFault, throughFaults } from '../../imports/file-import';
import { type CrmWrite, inUnitOfWork } from '../capture';
import { emailKey, lockEmails, normalizeEmail } from '../contact-integrity';
import { type Entry, getInspected, getSource, type WatchedSource } from '../mapping/sources';
import { lockRows, readRows, selectRows, serialize, tagsOf } from '../mapping/records';
import { createTag, crmRecords, freeSlug, tagsOfContact } from '../resources/crm-records';
import { keptInput, toData } from '../resources/to-data';
import { differences, upsertContact } from '../resources/upsert-contact';
import type { Payload } from '../rules';
import type { App } from '../../app';

const CONTACT = 'plugin::switchboard.contact' as UID.ContentType;

export interface ImportRow {
  line: number;
  email: string;
  /** The key of its address; see `emailKey`. */
  key: string;
  /** As REST takes a contact, without what the file leaves empty. */
  input: Record<string, unknown>;
  tags: string[];
}

/** Checks a new record as the host does, and writes nothing. @throws ValidationError (400) */
const validateNew = async (app: App, watched: WatchedSource, input: Input): Promise<void> => {
  const data = await toData(app, watched, input);
  const model = app.strapi.contentType(watched.uid as UID.ContentType);
  await app.strapi.entityValidator.validateEntityCreation(model, data as never);
};

/** The id of the tag that a file names: by its slug or name as written, else in other letters' case. */
export const findTag = async (app: App, text: string): Promise<string | null> => {
  const watched = getInspected(app, 'tag');
  const attributes = watched.source.fields.flatMap(({ attribute }) => attribute ?? []);
  if (attributes.length === 0) return null;
  const where = { $or: attributes.map((attribute) => ({ [attribute]: { $eqi: text } })) };
  const reading = { keys: null, tags: false };
  const rows = await readRows(app, watched, where, reading, { orderBy: { id: 'asc' } });
  const tags = rows.map((row) => serialize(watched.source, row));
  const exact = ['slug', 'name'].map((path) => tags.find((tag) => tag[path] === text));
  return ([...exact, ...tags].find(Boolean)?.id as string | undefined) ?? null;
};

/** Finds the tags that a file names, and makes those that are not there. */
export class ImportTags {
  private readonly known = new Map<string, string>();

  /** @param dryRun a missing tag is checked and not made; its name stands for its id */
  constructor(
    private readonly app: App,
    private readonly dryRun: boolean
  ) {}

  async idsOf(names: readonly string[]): Promise<string[]> {
    const ids: string[] = [];
    for (const name of names) ids.push(await this.idOf(name));
    return [...new Set(ids)];
  }

  private async idOf(name: string): Promise<string> {
    const { app, known } = this;
    const id =
      known.get(name) ??
      (await findTag(app, name)) ??
      known.get(name.toLowerCase()) ??
      (await this.make(name));
    known.set(name, id);
    return id;
  }

  private async make(name: string): Promise<string> {
    const { app, known } = this;
    if (!this.dryRun) return (await createTag(app, { name }, () => findTag(app, name))).id;
    const slug = await freeSlug(app, name);
    await validateNew(app, getInspected(app, 'tag'), { name, ...(slug && { slug }) });
    // A later row may name it in other letters' case, or by its slug.
    known.set(name.toLowerCase(), name);
    if (slug && !known.has(slug)) known.set(slug, name);
    return name;
  }
}

type Input = Readonly<Record<string, unknown>>;

const TAGS = 'tags';

/** By path of a relation: its attribute, and rows of its target by the ids that the file gives them. */
type Targets = ReadonlyMap<string, { attribute: string; rows: ReadonlyMap<unknown, number> }>;

/** @param tagIds of tags that these rows may be given */
const readTargets = async (app: App, rows: readonly ImportRow[], tagIds: string[]) => {
  const { source, tagSource } = getInspected(app, 'contact');
  const targets = new Map<string, { attribute: string; rows: Map<unknown, number> }>();
  const read = async (path: string, attribute: string, uid: string, ids: readonly unknown[]) => {
    const column = uid === 'admin::user' ? 'id' : 'documentId';
    const found = await findInChunks<{ id: number; documentId: string }, unknown>(ids, (some) =>
      selectRows(app, uid, { select: ['id', 'documentId'], where: { [column]: { $in: some } } })
    );
    targets.set(path, { attribute, rows: new Map(found.map((row) => [row[column], row.id])) });
  };
  for (const { path, attribute, shape } of source.fields) {
    if (!attribute || shape?.type !== 'relation') continue;
    const ids = rows.flatMap(({ input }) => input[path] ?? []);
    await read(path, attribute, shape.target ?? '', ids);
  }
  if (source.tags) await read(TAGS, source.tags, tagSource.uid, tagIds);
  return targets;
};

/** True if every record exists that an input names. */
const areThere = (input: Input, targets: Targets): boolean =>
  [...targets].every(([path, { rows }]) => !(path in input) || rows.has(input[path]));

const withoutReferences = (input: Input, targets: Targets): Input =>
  Object.fromEntries(Object.entries(input).filter(([key]) => !targets.has(key)));

interface JoinTable {
  name: string;
  joinColumn: { name: string };
  inverseJoinColumn: { name: string };
  orderColumnName?: string;
  inverseOrderColumnName?: string;
}

/** Changes of a contact by rows, as its next row finds it. */
type Changed = Pick<Update, 'changes' | 'tagIds'>;

interface KnownContact {
  rowId: number;
  contact: Payload;
  tagIds: ReadonlySet<string>;
}

interface Update {
  row: ImportRow;
  known: KnownContact;
  changes: Input;
  /** That it does not have. */
  tagIds: string[];
}

/** Links contacts in the relations' own tables: `connect` renumbers all contacts of a tag each time. */
const link = async (write: CrmWrite, updates: readonly Update[], targets: Targets) => {
  const { app } = write;
  const db = await app.db.current();
  const { attributes } = app.strapi.db.metadata.get(CONTACT);
  for (const [path, { attribute, rows }] of targets) {
    const { joinTable } = attributes[attribute] as unknown as { joinTable: JoinTable };
    const { name, joinColumn, inverseJoinColumn } = joinTable;
    const { orderColumnName: order, inverseOrderColumnName: inverse } = joinTable;
    const contacts = new Map<number, string>();
    const links = updates.flatMap(({ known: { rowId, contact, tagIds: present }, ...update }) => {
      const ids = path === TAGS ? update.tagIds : [update.changes[path]];
      return ids
        .flatMap((id) => rows.get(id) ?? [])
        .map((target, index) => {
          contacts.set(rowId, contact.id);
          return {
            [joinColumn.name]: rowId,
            [inverseJoinColumn.name]: target,
            ...(order && { [order]: present.size + index + 1 }),
            ...(inverse && { [inverse]: rowId }),
          };
        });
    });
    if (links.length === 0) continue;
    await write.trackLinking(getInspected(app, 'contact'), attribute, [...contacts.values()]);
    const linked = [...contacts.keys()];
    if (path !== TAGS) await db.table(name).whereIn(joinColumn.name, linked).delete();
    // SQLite limits the number of variables of one statement.
    for (const chunk of inChunks(links)) await db.table(name).insert(chunk);
  }
};

/** Another writer holds an address: run the transaction again in a moment. */
class AddressesHeldError extends Error {}

/** How often held addresses are tried again; together about half a second. */
const TRIES = 20;
const PAUSE_MS = 50;

/** Runs an import transaction, again after a held address or a deadlock. A caller's cannot be repeated: a savepoint. */
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

/** @throws ValidationError (400), because an imported contact in the bin would not show up in any list */
const refuseInBin = (contact: Payload): void => {
  if (isInBin(contact)) throw fieldError('email', 'belongs to a contact that is in the bin');
};

/** @returns null if the row changes nothing of the contact */
const updateOf = async (
  tags: ImportTags,
  row: ImportRow,
  known: KnownContact
): Promise<Update | null> => {
  const changes = differences(known.contact, inputForKnown(row, known.contact));
  const tagIds = (await tags.idsOf(row.tags)).filter((id) => !known.tagIds.has(id));
  const isNew = Object.keys(changes).length > 0 || tagIds.length > 0;
  return isNew ? { row, known, changes, tagIds } : null;
};

/** The contacts of rows, by the key of their address; the oldest of several. */
const readKnown = async (app: App, rows: readonly ImportRow[]) => {
  const watched = getInspected(app, 'contact');
  const { own, fields } = watched.source;
  const email = fields.find(({ path }) => path === 'email')?.attribute ?? null;
  const known = new Map<string, KnownContact>();
  if (rows.length === 0 || email === null) return known;
  const where = own
    ? { email_key: { $in: rows.map(({ key }) => key) } }
    : { $or: rows.map((row) => ({ [email]: { $eqi: normalizeEmail(row.email) } })) };
  // Relations that no row of the file names are not loaded.
  const keys = new Set(rows.flatMap(({ input }) => Object.keys(input)));
  const reading = { keys, tags: rows.some(({ tags }) => tags.length > 0) };
  for (const row of await readRows(app, watched, where, reading, { orderBy: { id: 'desc' } })) {
    const contact = serialize(watched.source, row);
    const tagIds = new Set(tagsOf(watched, row).map(({ id }) => id));
    known.set(emailKey(contact.email) ?? '', { rowId: Number(row.id), contact, tagIds });
  }
  return known;
};

/** The n-th row of an address is in the n-th round: each sees what the one before it made. */
const roundsOf = (rows: readonly ImportRow[]): ImportRow[][] => {
  const rounds: ImportRow[][] = [];
  const seen = new Map<string, number>();
  for (const row of rows) {
    const round = seen.get(row.key) ?? 0;
    seen.set(row.key, round + 1);
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

/** Imports rows in sets; row by row if a transaction fails or a record that rows name is missing. */
export class ContactBatch {
  readonly result: BatchResult = { created: 0, updated: 0, unchanged: 0, failures: [] };

  constructor(
    private readonly app: App,
    private readonly tags: ImportTags
  ) {}

  async import(rows: readonly ImportRow[]): Promise<BatchResult> {
    for (const round of roundsOf(await this.prepareTags(rows))) await this.importRound(round);
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
    const contacts = await readKnown(this.app, own);
    const tagIds = await Promise.all(own.map(({ tags }) => this.tags.idsOf(tags)));
    const targets = await readTargets(this.app, own, tagIds.flat());
    for (const row of own) {
      const known = contacts.get(row.key);
      const update = known && (await updateOf(this.tags, row, known));
      if (!known) (areThere(row.input, targets) ? fresh : left).push(row);
      else if (isInBin(known.contact)) left.push(row);
      else if (!update) this.result.unchanged += 1;
      else if (areThere(update.changes, targets)) updates.push(update);
      else left.push(row);
    }
    left.push(...(await this.together(fresh, () => this.insert(fresh, targets))));
    const known = updates.map(({ row }) => row);
    left.push(...(await this.together(known, () => this.update(updates, targets))));
    await this.importEach(left.sort((one, other) => one.line - other.line));
  }

  /** True if a row's contact, and its tags if any, are in the plugin's own types. */
  private isOwn(row: ImportRow): boolean {
    const { source, tagSource } = getInspected(this.app, 'contact');
    const takesTags = tagSource.own && source.tags !== null;
    return source.own && (row.tags.length === 0 || takesTags);
  }

  /** Writes rows in one transaction; returns those to import singly: all, if it failed or addresses stayed locked. */
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
   * Inserts contacts and their tags in one transaction that first locks all their addresses. Contacts that another
   * writer has just created are left unchanged.
   * @throws AddressesHeldError if another writer holds one of the addresses
   */
  private insert(rows: readonly ImportRow[], targets: Targets): Promise<Outcome> {
    const { app, tags } = this;
    const watched = getInspected(app, 'contact');
    return inUnitOfWork(app, watched.events, async (write) => {
      const emails = rows.map(({ email }) => email);
      if (!(await lockEmails(app, emails, 'skip'))) throw new AddressesHeldError();
      const taken = await this.stored(rows);
      const free = rows.filter((row) => !taken.has(row.key));
      const data: Record<string, unknown>[] = [];
      for (const { input } of free) {
        const given = { source: 'import', ...withoutReferences(input, targets) };
        data.push(await toData(app, watched, keptInput(app, watched.source, given)));
      }
      if (data.length > 0) await app.strapi.db.query(CONTACT).createMany({ data: data as never });
      const stored = await this.stored(free);
      const updates: Update[] = [];
      for (const row of free) {
        const known = stored.get(row.key);
        const tagIds = await tags.idsOf(row.tags);
        if (known) updates.push({ row, known, changes: row.input, tagIds });
      }
      await link(write, updates, targets);
      return { created: free.length, left: rows.filter((row) => taken.has(row.key)) };
    });
  }

  /** Changes known contacts of different addresses in one transaction, by what they are by then. */
  private update(found: readonly Update[], targets: Targets): Promise<Outcome> {
    const { app } = this;
    return inUnitOfWork(app, getInspected(app, 'contact').events, async (write) => {
      // The first statement, because MySQL keeps the snapshot of the transaction's first read.
      await lockRows(app, CONTACT, { id: { $in: found.map(({ known }) => known.rowId) } });
      const rows = found.map(({ row }) => row);
      const current = await readKnown(app, rows);
      const updates: Update[] = [];
      const left: ImportRow[] = [];
      for (const { row, known: before } of found) {
        const known = current.get(row.key);
        const isLocked = known?.rowId === before.rowId;
        const update = known && (await updateOf(this.tags, row, known));
        const isLeft = !known || !isLocked || isInBin(known.contact);
        if (isLeft || (update && !areThere(update.changes, targets))) left.push(row);
        else if (update) updates.push(update);
      }
      await this.writeChanges(updates, targets);
      await link(write, updates, targets);
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
        refuseInBin(known);
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

  /** The contacts of these rows that are there, by the key of their address: their ids alone. */
  private async stored(rows: readonly ImportRow[]): Promise<Map<string, KnownContact>> {
    const where = { email_key: { $in: rows.map(({ key }) => key) } };
    const select = ['id', 'documentId', 'email_key'];
    const found = await selectRows<Entry>(this.app, CONTACT, { select, where });
    return new Map(
      found.map(({ id, documentId, email_key: key }) => [
        String(key),
        { rowId: Number(id), contact: { id: String(documentId) }, tagIds: new Set<string>() },
      ])
    );
  }

  /** One statement for all contacts that change in the same way, such as to the same stage. */
  private async writeChanges(updates: readonly Update[], targets: Targets): Promise<void> {
    const { app } = this;
    const groups = new Map<string, { ids: number[]; changes: Input }>();
    for (const { known, changes: all } of updates) {
      const changes = withoutReferences(all, targets);
      const key = JSON.stringify(changes);
      const group = groups.get(key) ?? { ids: [], changes };
      group.ids.push(known.rowId);
      groups.set(key, group);
    }
    for (const { ids, changes } of groups.values()) {
      const data = await toData(app, getInspected(app, 'contact'), changes);
      const where = { id: ids.length === 1 ? ids[0] : { $in: ids } };
      // The host dates an update of many only if it is given a list.
      const dated = { ...data, updatedAt: new Date() };
      await app.strapi.db.query(CONTACT).updateMany({ where, data: dated as never });
    }
  }
}

/** A contact of which nothing was given. */
const blankOf = (app: App, { uid, source }: WatchedSource): Payload => {
  const { attributes } = app.strapi.contentType(uid as UID.ContentType);
  const shapes = Object.entries(attributes as Record<string, { default?: unknown }>);
  const entry: Entry = Object.fromEntries(shapes.map(([name, one]) => [name, one.default]));
  return serialize(source, entry);
};

/** Says what an import of rows would come to, and only reads. */
export class ContactPreview {
  private readonly tags: ImportTags;
  /** Changes by earlier rows, by address: as JSON, which takes a fifth of the room. */
  private readonly changed = new Map<string, string>();

  constructor(private readonly app: App) {
    this.tags = new ImportTags(app, true);
  }

  /** @throws the database's error; then nothing counts, and it can be called again */
  async of(rows: readonly ImportRow[]): Promise<BatchResult> {
    const result: BatchResult = { created: 0, updated: 0, unchanged: 0, failures: [] };
    const { own } = getSource(this.app, 'contact');
    const known = await readKnown(this.app, rows);
    const targets = own ? await readTargets(this.app, rows, []) : null;
    const changed = new Map<string, string>();
    for (const row of rows) {
      try {
        const before = changed.get(row.key) ?? this.changed.get(row.key);
        const [outcome, after] = await this.ofOne(row, known.get(row.key), before, targets);
        result[outcome] += 1;
        if (after) changed.set(row.key, JSON.stringify(after));
      } catch (error) {
        result.failures.push({ row, message: rowFault(error) });
      }
    }
    for (const [key, after] of changed) this.changed.set(key, after);
    return result;
  }

  /** @param before what earlier rows have changed of the contact */
  private async ofOne(
    row: ImportRow,
    stored: KnownContact | undefined,
    before: string | undefined,
    targets: Targets | null
  ): Promise<[keyof Counts, Changed?]> {
    const { app, tags } = this;
    const watched = getInspected(app, 'contact');
    const tagIds = await tags.idsOf(row.tags).catch((error: unknown) => {
      throw new errors.ApplicationError(`tags: ${rowFault(error)}`);
    });
    if (!stored && before === undefined) {
      const input = keptInput<Input>(app, watched.source, { source: 'import', ...row.input });
      if (!targets) await validateNew(app, watched, { ...input, email: row.email });
      else if (!areThere(input, targets)) await toData(app, watched, input);
      return ['created', { changes: input, tagIds }];
    }
    const earlier = before === undefined ? null : (JSON.parse(before) as Changed);
    const contact = { ...(stored?.contact ?? blankOf(app, watched)), ...earlier?.changes };
    refuseInBin(contact);
    const present = new Set([...(stored?.tagIds ?? []), ...(earlier?.tagIds ?? [])]);
    const update = await updateOf(tags, row, { rowId: 0, contact, tagIds: present });
    if (!update) return ['unchanged'];
    if (!targets || !areThere(update.changes, targets)) await toData(app, watched, update.changes);
    const changes = { ...earlier?.changes, ...update.changes };
    return ['updated', { changes, tagIds: [...(earlier?.tagIds ?? []), ...update.tagIds] }];
  }
}
