import { setTimeout as pause } from 'node:timers/promises';
import { errors } from '@strapi/utils';
import type { Knex } from 'knex';
import type { PurchasesService } from '../../../shared/contracts/customers';
import { writtenDigits } from '../database/contains';
import { createFaultLog, isDuplicate } from '../database/retry';
import { SITE_TABLE } from '../database/site';
import {
  aroundCalls,
  type DocumentCall,
  giveDocumentId,
  idNamed,
  inChunks,
  listenToWrites,
  lockWritten,
  ofOneOrMany,
  type WriteEvent,
  writtenRows,
} from '../database/written-rows';
import type { PlainTable } from '../database/tables/plain-tables';
import { fieldError } from '../http/validation';
import { BackgroundWork, byClock, whenLoaded } from '../runtime/event-loop';
import { digestOf } from '../runtime/text';
import { selectRows } from './mapping/records';
import { columnOf, getInspected, type ValueColumn } from './mapping/sources';
import { currentOrigin } from './origin';
import type { App, Slot } from '../app';
import type { Db } from '../database/db';

/** How addresses are compared: without regard to case or to spaces around them. */
export const normalizeEmail = (email: string): string => email.trim().toLowerCase();

/** The unique key of an address, as a digest: MySQL's collation equates `jose@…` and `josé@…`. Null without one. */
export const emailKey = (email: unknown): string | null =>
  typeof email === 'string' && email.trim() !== '' ? digestOf(normalizeEmail(email)) : null;

type Data = Record<string, unknown>;

const CONTACT = 'plugin::switchboard.contact';
const CONTACTS_TABLE = 'switchboard_contacts';
/** How many contacts a walk through all of them reads at a time. */
const AT_ONCE = 500;
const TAG = 'plugin::switchboard.tag';
export const SLUG_MAX = 255;

/** A 400 that names the field, in the form in which the content manager shows it at the field. */
export class EmailTakenError extends errors.ValidationError {
  /** @param inBin whether lists hide the other one, so that users cannot find it */
  constructor(inBin = false) {
    const wrong = `belongs to another contact${inBin ? ', which is in the bin' : ''}`;
    const { message, details } = fieldError('email', wrong);
    super(message, details);
  }
}

const slugKey = (slug: unknown): string | null =>
  typeof slug === 'string' && slug !== '' ? digestOf(slug) : null;

/** A value that only one record of a type may have. */
const EMAIL = {
  attribute: 'email',
  key: 'email_key',
  keyOf: emailKey,
  /** The databases' messages about the unique index: its name, or on SQLite its column. */
  conflict: /switchboard_contacts_email\b|switchboard_contacts\.email_key\b/,
  taken: (): errors.ValidationError => new EmailTakenError(),
};

const SLUG: typeof EMAIL = {
  attribute: 'slug',
  key: 'slug_key',
  keyOf: slugKey,
  conflict: /switchboard_tags_slug\b|switchboard_tags\.slug_key\b/,
  taken: () => fieldError('slug', 'belongs to another tag'),
};

const UNIQUE: Readonly<Record<string, typeof EMAIL | undefined>> = {
  [CONTACT]: EMAIL,
  [TAG]: SLUG,
};

/** True if a tag was refused for its slug, by the host's own check or by the index. */
export const isSlugTaken = (error: unknown): boolean => {
  if (isDuplicate(error, SLUG.conflict)) return true;
  if (!(error instanceof errors.ValidationError)) return false;
  const { errors: found } = error.details as {
    errors?: { path?: unknown[]; message?: string }[];
  };
  return (found ?? []).some(
    ({ path, message }) => path?.[0] === 'slug' && /unique|another tag/.test(message ?? '')
  );
};

/** @throws EmailTakenError if another contact has the address that a call gives. */
const refuseTakenEmail = async (app: App, call: DocumentCall): Promise<void> => {
  const { action } = call;
  if (!['create', 'update', 'clone'].includes(action)) return;
  if (action === 'clone' && call.params.data?.email === undefined) {
    call.params = { ...call.params, data: { ...call.params.data, email: null } };
  }
  const key = emailKey(call.params.data?.email);
  if (key === null) return;
  const [taken] = await selectRows<{ documentId: string; trashed_at: unknown }>(app, CONTACT, {
    select: ['id', 'documentId', 'trashed_at'],
    where: { email_key: key },
    limit: 1,
  });
  if (!taken || (action === 'update' && taken.documentId === call.params.documentId)) return;
  throw new EmailTakenError(taken.trashed_at !== null);
};

/**
 * Refuses a second contact with an address, or tag with a slug, with a readable error, also if the unique index finds
 * it, and a change in the panel of a contact that was deleted meanwhile. Opens no transaction and takes no lock: the
 * site's own middlewares run after this one and may use a connection.
 */
export const refuseTaken = (app: App): void => {
  aroundCalls(app.strapi, async (call, run) => {
    const unique = UNIQUE[call.uid];
    if (!unique) return run();
    if (call.uid === CONTACT) await refuseTakenEmail(app, call);
    try {
      const result = await run();
      // The host answers 200 to the panel, whose user would take the change for saved.
      const isLost = result === null && call.action === 'update' && call.uid === CONTACT;
      if (isLost && currentOrigin(app) === 'admin')
        throw new errors.NotFoundError('Contact not found');
      return result;
    } catch (error) {
      throw isDuplicate(error, unique.conflict) ? unique.taken() : error;
    }
  });
};

/** Gives tags of 0.2 a key, and duplicates a new slug, at every boot, as a 0.2 node may add more. Interruptible. */
export const settleTagSlugs = async (app: App): Promise<void> => {
  const tags = () => app.db.pool.table('switchboard_tags');
  const found = (await tags()
    .select('id', 'slug')
    .whereNull('slug_key')
    .whereNotNull('slug')
    .andWhere('slug', '<>', '')
    .orderBy('id')) as { id: number; slug: string }[];
  /** @returns whether it is free; a row that was changed meanwhile stays unchanged */
  const take = async (row: { id: number; slug: string }, slug: string): Promise<boolean> => {
    try {
      await tags()
        .where(row)
        .whereNull('slug_key')
        .update({ slug, slug_key: slugKey(slug) });
      return true;
    } catch (error) {
      if (!isDuplicate(error, SLUG.conflict)) throw error;
      return false;
    }
  };
  for (const row of found) {
    if (await take(row, row.slug)) continue;
    for (let nth = 1; ; nth += 1) {
      const end = `-${nth}`;
      const slug = `${row.slug.slice(0, SLUG_MAX - end.length)}${end}`;
      // Another one may have it, and no key yet.
      if ((await tags().where({ slug }).first('id')) || !(await take(row, slug))) continue;
      app.log.warn(
        `switchboard: two tags had the slug ${JSON.stringify(row.slug)}; tag ${row.id} has ${JSON.stringify(slug)} now`
      );
      break;
    }
  }
};

/** A date that a status carries along: set by the plugin when a record comes into that status. */
interface DerivedDate {
  status: string;
  value: string;
  date: string;
  /** The date goes again when the record leaves the status; otherwise it is history. */
  current?: true;
}

const DERIVED_DATES: Readonly<Record<string, readonly DerivedDate[]>> = {
  [CONTACT]: [
    { status: 'contact_status', value: 'subscribed', date: 'subscribed_at' },
    { status: 'contact_status', value: 'unsubscribed', date: 'unsubscribed_at' },
  ],
  'plugin::switchboard.deal': [
    { status: 'deal_status', value: 'won', date: 'closed_at', current: true },
    { status: 'deal_status', value: 'lost', date: 'closed_at', current: true },
  ],
  'plugin::switchboard.task': [
    { status: 'task_status', value: 'done', date: 'completed_at', current: true },
  ],
  'plugin::switchboard.campaign': [{ status: 'campaign_status', value: 'sent', date: 'sent_at' }],
};

/** The parts of a contact's display name. */
export const NAMED_BY = ['first_name', 'last_name', 'email', 'phone'] as const;

/** The title of a contact in the panel: the person's name, else the email address, else the phone number. */
const displayName = (contact: Data): string | null => {
  const [first, last, email, phone] = NAMED_BY.map((name) =>
    String(contact[name] ?? '').replace(/^ +| +$/g, '')
  );
  return [first, last].filter(Boolean).join(' ') || email || phone || null;
};

/** `displayName` of a row as it is now: of two overlapping writers, the last one sees both changes. */
const DISPLAY_NAME =
  "COALESCE(NULLIF(CONCAT_WS(' ', NULLIF(TRIM(first_name), ''), NULLIF(TRIM(last_name), '')), '')," +
  " NULLIF(TRIM(email), ''), NULLIF(TRIM(phone), ''))";

const isRenamed = ({ model: { uid }, params: { data } }: DataEvent): boolean =>
  uid === CONTACT && NAMED_BY.some((name) => (data as Data | undefined)?.[name] !== undefined);

const renameWritten = async (app: App, event: DataEvent): Promise<void> => {
  if (!isRenamed(event)) return;
  const rows = await lockWritten(app.strapi, event);
  const ids = rows ? rows.map(({ id }) => id) : [Number(idNamed(event.params.where))];
  const db = await app.db.current();
  for (const some of inChunks(ids)) {
    const contacts = db.table(CONTACTS_TABLE).whereIn('id', some);
    await contacts.update({ display_name: db.raw(DISPLAY_NAME) });
  }
  const result = event.result as Data | null | undefined;
  if (result && [...NAMED_BY, 'display_name'].every((name) => name in result)) {
    result.display_name = displayName(result);
  }
};

/** Names contacts of earlier versions and of the host's imports, at every boot; interruptible, on several nodes too. */
export const settleDisplayNames = async ({ db: { pool } }: App): Promise<void> => {
  const nameless = () => pool.table(CONTACTS_TABLE).whereNull('display_name');
  for (let last = 0, isFull = true; isFull;) {
    const ids: number[] = await nameless()
      .where('id', '>', last)
      .whereRaw(`${DISPLAY_NAME} IS NOT NULL`)
      .orderBy('id')
      .limit(AT_ONCE)
      .pluck('id');
    isFull = ids.length === AT_ONCE;
    last = Number(ids.at(-1));
    await nameless()
      .whereIn('id', ids)
      .update({ display_name: pool.raw(DISPLAY_NAME) });
  }
};

type DataEvent = WriteEvent & { params: { data?: Data | Data[]; where?: Data }; result?: unknown };

const giveKey = (uid: string, data: Data): void => {
  const unique = UNIQUE[uid];
  const value = unique && data[unique.attribute];
  if (unique && value !== undefined) data[unique.key] = unique.keyOf(value);
};

/** Completes new rows; a date that is given stays (an import knows better than the clock). */
const completeNew = ({ model: { uid }, params }: DataEvent): void => {
  const now = new Date();
  for (const data of [params.data ?? {}].flat()) {
    giveKey(uid, data);
    if (uid === CONTACT) data.display_name = displayName(data);
    for (const { status, value, date } of DERIVED_DATES[uid] ?? []) {
      if (data[status] === value) data[date] ??= now;
    }
  }
};

/** Completes an update, and sets the date of a status on the records that it brings into it. */
const completeChanged = async (app: App, event: DataEvent): Promise<void> => {
  const { uid } = event.model;
  const { data } = event.params;
  if (!data || Array.isArray(data)) return;
  giveKey(uid, data);
  if (uid === CONTACT) delete data.display_name;
  if (isRenamed(event)) await lockWritten(app.strapi, event);
  const dates = DERIVED_DATES[uid] ?? [];
  const isLeft = ({ status, date }: DerivedDate): boolean =>
    data[status] !== undefined &&
    data[date] === undefined &&
    !dates.some((other) => other.date === date && other.value === data[status]);
  const derived = dates.find(
    ({ status, value, date }) => data[status] === value && data[date] === undefined
  );
  // A deal that is open again was not closed.
  for (const one of dates) if (one.current && isLeft(one)) data[one.date] = null;
  if (!derived) return;
  // The host may change one of several that match: from here on the condition names it.
  await lockWritten(app.strapi, event);
  const { where } = event.params;
  const others = {
    $or: [{ [derived.status]: { $ne: derived.value } }, { [derived.status]: null }],
  };
  await app.strapi.db
    .queryBuilder(uid)
    .where(where ? { $and: [where, others] } : others)
    .update({ [derived.date]: new Date() })
    .execute();
};

export const keepDerivedColumns = (app: App): void => {
  const onUpdate = (event: DataEvent) => completeChanged(app, event);
  const onUpdated = (event: DataEvent) => renameWritten(app, event);
  const listeners = { beforeCreate: completeNew, beforeUpdate: onUpdate, afterUpdate: onUpdated };
  listenToWrites(app.strapi, [...Object.keys(DERIVED_DATES), TAG], ofOneOrMany(listeners));
};

const TABLE = 'switchboard_email_locks';
const BUCKETS = 256;

/** Rows that are there to be locked and for nothing else. */
export const emailLockTable: PlainTable = {
  tableName: TABLE,
  attributes: { uses: { type: 'biginteger' } },
};

/** Makes the rows once; another node may be doing the same. */
export const prepareEmailLocks = async (app: App): Promise<void> => {
  const db = await app.db.current();
  const rows = Array.from({ length: BUCKETS }, (_none, index) => ({ id: index + 1, uses: 0 }));
  await db.table(TABLE).insert(rows).onConflict('id').ignore();
};

const bucketOf = (key: string): number => (Number.parseInt(key.slice(0, 6), 16) % BUCKETS) + 1;

/**
 * Locks the existing rows of addresses until the transaction ends; by primary key, because that waits on every server
 * and locks no gap. Call it before the transaction reads, if possible: MySQL keeps the snapshot of its first read.
 * @param onHeld `skip` for several addresses: waiting while holding some could deadlock, as between two forms
 * @returns false if a held address was skipped: end the transaction and run it again
 */
export const lockEmails = async (
  app: App,
  emails: readonly string[],
  onHeld: 'wait' | 'skip' = 'wait'
): Promise<boolean> => {
  const keys = emails.map(emailKey).filter((key) => key !== null);
  const buckets = [...new Set(keys.map(bucketOf))];
  if (buckets.length === 0) return true;
  const db = await app.db.current();
  const query = db.table(TABLE).whereIn('id', buckets);
  if (app.db.client === 'sqlite') {
    // It locks no rows: a transaction that begins with a write is the only writer from there on.
    await query.increment('uses', 1);
    return true;
  }
  query.select('id').forUpdate();
  if (onHeld === 'skip') query.skipLocked();
  const locked = (await query) as unknown[];
  return locked.length === buckets.length;
};

/** Runs a write that gives a contact this address, locked first; in a caller’s transaction the index decides. */
export const withEmailLock = <T>(app: App, email: unknown, work: () => Promise<T>): Promise<T> => {
  if (typeof email !== 'string' || emailKey(email) === null || app.db.inTransaction())
    return work();
  return app.db.transaction(async () => {
    await lockEmails(app, [email]);
    return work();
  });
};

const PHONES_TABLE = 'switchboard_contact_phones';

/** The last digits of phones that contacts have or had. The contact decides; a row too many costs a look. */
export const phonesTable: PlainTable = {
  tableName: PHONES_TABLE,
  attributes: {
    digits: { type: 'string', column: { args: [6] } },
    document_id: { type: 'string' },
  },
  indexes: [
    { name: 'sb_phone_digits', columns: ['digits', 'document_id'], type: 'unique' },
    { name: 'sb_phone_contact', columns: ['document_id'] },
  ],
};

export const phoneColumn = (app: App): ValueColumn | null =>
  columnOf(app, getInspected(app, 'contact'), 'phone');

/** Numbers of one person end alike, however they begin. */
const LAST_DIGITS = 6;

/** The key of a phone in the index; null if it has too few digits to be one. */
const lastDigits = (phone: unknown): string | null => {
  const digits = ['string', 'number'].includes(typeof phone)
    ? String(phone).replace(/\D/g, '')
    : '';
  return digits.length < LAST_DIGITS ? null : digits.slice(-LAST_DIGITS);
};

interface ContactPhone {
  document_id: string;
  phone: unknown;
}

/** Adds what is new. It asks the database nothing where none of these is a phone. */
const indexPhones = async (db: Db, contacts: readonly ContactPhone[]): Promise<void> => {
  const rows = contacts.flatMap(({ document_id, phone }) => {
    const digits = lastDigits(phone);
    return digits === null ? [] : [{ digits, document_id }];
  });
  await db.insert(PHONES_TABLE, rows, { unique: ['digits', 'document_id'], then: 'ignore' });
};

/** Indexes phones in the transaction of each contact write; a timer removes what bulk deletions leave. */
const followPhones = (app: App, source: ValueColumn, isKept: () => boolean): void => {
  const { strapi } = app;
  const { attribute, tableName } = source;
  const { uid } = getInspected(app, 'contact');
  const index = async (contacts: readonly ContactPhone[]): Promise<void> =>
    indexPhones(await app.db.current(), contacts);
  const written = ({ params, result }: DataEvent): Promise<void> | undefined => {
    const phone = (params.data as Data | undefined)?.[attribute];
    const id = (result as { documentId?: unknown } | null | undefined)?.documentId;
    if (isKept() && phone && typeof id === 'string') return index([{ document_id: id, phone }]);
  };
  const withPhone = ({ params }: DataEvent): Data[] =>
    isKept()
      ? [params.data ?? []].flat().filter((data) => lastDigits(data[attribute]) !== null)
      : [];
  listenToWrites(strapi, [uid], {
    afterCreate: written,
    afterUpdate: written,
    beforeCreateMany(event: DataEvent) {
      for (const data of withPhone(event)) {
        if (typeof data.documentId !== 'string') giveDocumentId(strapi, uid, data);
      }
    },
    afterCreateMany(event: DataEvent) {
      // Without an id are those of a write that began before the index did.
      const contacts = withPhone(event).filter(({ documentId: id }) => typeof id === 'string');
      return index(
        contacts.map((data) => ({ document_id: String(data.documentId), phone: data[attribute] }))
      );
    },
    async beforeUpdateMany(event: DataEvent) {
      const phone = (event.params.data as Data | undefined)?.[attribute];
      if (lastDigits(phone) === null || !isKept()) return;
      const rows = await writtenRows(strapi, event);
      await index(rows.map(({ documentId: document_id }) => ({ document_id, phone })));
    },
    async afterDelete({ result }: DataEvent) {
      const row = result as ({ documentId?: unknown } & Data) | null;
      if (typeof row?.documentId !== 'string' || lastDigits(row[attribute]) === null) return;
      const db = await app.db.current();
      const where = { document_id: row.documentId };
      // Its draft, or another language of it, may still be there.
      await db
        .table(PHONES_TABLE)
        .where(where)
        .whereNotExists(db.table(tableName).select('id').where(where))
        .delete();
    },
  });
};

/*
 * The index is kept while a connection of a till attaches customers. Each node looks once a minute if one does, and
 * the first that finds one begins the index: a mark in the database has its time, and up to which id contacts are
 * indexed. Contacts behind the mark are searched directly (`phoneCandidates`). Any node may go on with the filling,
 * once all of them have kept the index for minutes: by then their earlier writes are committed. The rest, such as
 * transactions that are open for longer and imports of the host's, is found at night.
 */

const MARK = { name: 'contact_phones' };
const PAUSE_MS = 10;
const LOOK_AGAIN = '23 * * * * *';
const NIGHTLY = '41 3 * * *';
const SETTLED_MS = 10 * 60_000;

const marks = (db: Db): Knex.QueryBuilder => db.table(SITE_TABLE).where(MARK);

interface Mark {
  /** When the index was begun, by the database's clock. */
  since: number;
  /** The last row of a contact that is indexed. */
  id: number;
}

/** Another type, or another field of it, is walked from its beginning. */
const markOf = (app: App, { attribute }: ValueColumn, { since, id }: Mark): string =>
  `${getInspected(app, 'contact').uid}/${attribute}/${since}/${id}`;

/** @returns null if the index is not kept */
const readMark = async (app: App, source: ValueColumn, mark: Knex.QueryBuilder) => {
  const known = (await mark.first()) as { value: string } | undefined;
  const [since, id] = known?.value.split('/').slice(-2).map(Number) ?? [];
  const read = { since: since ?? NaN, id: id ?? NaN };
  return known?.value === markOf(app, source, read) && !Number.isNaN(read.since) ? read : null;
};

/** The tills' service; a site without tills has none. */
export const purchasesOf = ({ strapi }: App) =>
  strapi.service('plugin::switchboard.pos-purchases') as unknown as PurchasesService | undefined;

/** Begins the index, or ends it. @returns whether it is kept */
const keepPhones = async (app: App, source: ValueColumn): Promise<boolean> => {
  const db = app.db.pool;
  const isWanted = (await purchasesOf(app)?.areAttached()) ?? false;
  if (!isWanted) {
    if (await marks(db).first()) await marks(db).delete();
  } else if (!(await readMark(app, source, marks(db)))) {
    const begun = { ...MARK, value: markOf(app, source, { since: app.clock.now(), id: 0 }) };
    await db.table(SITE_TABLE).insert(begun).onConflict('name').merge();
  }
  return isWanted;
};

/** The contacts whose phone may end as this one: those of the index, and those that it has not reached. */
export const phoneCandidates = async (app: App, phone: string): Promise<string[]> => {
  const source = phoneColumn(app);
  const digits = lastDigits(phone);
  if (!source || digits === null) return [];
  const { tableName, column } = source;
  const db = await app.db.current();
  const indexed: string[] = await db.table(PHONES_TABLE).where({ digits }).pluck('document_id');
  const written = writtenDigits(column);
  const others = (await db
    .table(tableName)
    .distinct('document_id')
    .where('id', '>', (await readMark(app, source, marks(db)))?.id ?? 0)
    .whereNotNull(column)
    .whereRaw(`${written.sql} LIKE ?`, [...written.bindings, `%${digits}`])) as {
    document_id: string;
  }[];
  return [...new Set([...indexed, ...others.map(({ document_id: id }) => id)])].sort();
};

type Contact = ContactPhone & { id: number };

const contactsAfter = (db: Db, { tableName, column }: ValueColumn, id: number) =>
  db
    .table(tableName)
    .select('id', 'document_id', `${column} as phone`)
    .where('id', '>', id)
    .orderBy('id')
    .limit(AT_ONCE) as unknown as Promise<Contact[]>;

/** Most were indexed as they were written. */
const indexMissing = async (db: Db, contacts: readonly Contact[]): Promise<void> => {
  const ids = contacts.map(({ document_id: id }) => id);
  const known = (await db
    .table(PHONES_TABLE)
    .select('digits', 'document_id')
    .whereIn('document_id', ids)) as { digits: string; document_id: string }[];
  const indexed = new Set(known.map(({ digits, document_id: id }) => `${digits}/${id}`));
  const isMissing = ({ document_id: id, phone }: Contact): boolean =>
    !indexed.has(`${lastDigits(phone) ?? ''}/${id}`);
  await indexPhones(db, contacts.filter(isMissing));
};

/** @returns whether there is more to do */
const fillSome = (app: App, source: ValueColumn): Promise<boolean> =>
  app.db.retrying(async (tx) => {
    const mark = await readMark(app, source, marks(tx).forUpdate());
    if (!mark || app.clock.now() - mark.since < SETTLED_MS) return false;
    const contacts = await contactsAfter(tx, source, mark.id);
    const last = contacts.at(-1);
    const isFull = contacts.length === AT_ONCE;
    // A few without a phone are not worth a write a minute.
    if (!last || (!isFull && contacts.every(({ phone }) => lastDigits(phone) === null)))
      return false;
    await indexMissing(tx, contacts);
    await marks(tx).update({ value: markOf(app, source, { ...mark, id: last.id }) });
    return isFull;
  });

/** Adds missing digits, and removes those that no contact's phone has any more. */
const repairPhones = async (app: App, source: ValueColumn, isStopped: () => boolean) => {
  const db = app.db.pool;
  for (let last = 0, isFull = true; isFull && !isStopped(); await pause(PAUSE_MS)) {
    const contacts = await contactsAfter(db, source, last);
    isFull = contacts.length === AT_ONCE;
    if (contacts.length > 0) await indexMissing(db, contacts);
    last = Number(contacts.at(-1)?.id);
  }
  for (let last = 0, isFull = true; isFull && !isStopped(); await pause(PAUSE_MS)) {
    const phones = (await db
      .table(PHONES_TABLE)
      .select('id', 'digits', 'document_id')
      .where('id', '>', last)
      .orderBy('id')
      .limit(AT_ONCE)) as { id: number; digits: string; document_id: string }[];
    isFull = phones.length === AT_ONCE;
    const ids = [...new Set(phones.map(({ document_id: id }) => id))];
    const contacts = (await db
      .table(source.tableName)
      .select('document_id', `${source.column} as phone`)
      .whereIn('document_id', ids)) as ContactPhone[];
    const kept = new Set(
      contacts.map(({ document_id: id, phone }) => `${lastDigits(phone) ?? ''}/${id}`)
    );
    const gone = phones.filter(({ digits, document_id: id }) => !kept.has(`${digits}/${id}`));
    const goneIds = gone.map(({ id }) => id);
    if (goneIds.length > 0) await db.table(PHONES_TABLE).whereIn('id', goneIds).delete();
    last = Number(phones.at(-1)?.id);
  }
};

const stops = (): Slot<() => Promise<void>> => ({});

/** Keeps the phone index while it is needed, filled in the background. Call it after the start of change capture. */
export const startPhoneIndex = async (app: App): Promise<void> => {
  const source = phoneColumn(app);
  if (!source) return;
  let isKept = await keepPhones(app, source);
  followPhones(app, source, () => isKept);
  const logFault = createFaultLog(app.log);
  let isNight = false;
  const work = new BackgroundWork({
    detached: app.detached,
    async pass(isStopped) {
      isKept = await keepPhones(app, source);
      while (!isStopped() && (await fillSome(app, source))) await pause(PAUSE_MS);
      if (!isNight) return;
      isNight = false;
      if (isKept) await repairPhones(app, source, isStopped);
    },
    failed: (error) => logFault('switchboard: phones of contacts were not indexed', error),
  });
  const lookAtAll = (): void => {
    isNight = true;
    work.wake();
  };
  byClock(app.strapi, {
    switchboardContactPhones: [LOOK_AGAIN, () => work.wake()],
    switchboardForgottenPhones: [NIGHTLY, lookAtAll],
  });
  const giveUpStart = whenLoaded(app.strapi, () => work.wake());
  app.part(stops).value = () => {
    giveUpStart();
    return work.stop();
  };
};

/** Lets the step under way commit. */
export const stopPhoneIndex = async (app: App): Promise<void> => app.part(stops).value?.();
