import { createHash } from 'node:crypto';
import { errors } from '@strapi/utils';
import type { Knex } from 'knex';
import { isDuplicate } from '../database/retry';
import { listenToWrites, lockWritten, type WriteEvent } from '../database/written-rows';
import type { PlainTable } from '../database/tables/plain-tables';
import { fieldError } from '../http/validation';
import type { App } from '../app';

/** How addresses are compared: without regard to case or to spaces around them. */
export const normalizeEmail = (email: string): string => email.trim().toLowerCase();

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');

/**
 * What the database compares for uniqueness. A digest, because collations differ: MySQL's default
 * one would take `jose@…` and `josé@…` for one address.
 * @returns null where there is no address: many contacts may have none.
 */
export const emailKey = (email: unknown): string | null =>
  typeof email === 'string' && email.trim() !== '' ? digestOf(normalizeEmail(email)) : null;

type Data = Record<string, unknown>;

const CONTACT = 'plugin::switchboard.contact';
const TAG = 'plugin::switchboard.tag';
export const SLUG_MAX = 255;

/** A 400 that names the field, in the form in which the content manager shows it beside it. */
export class EmailTakenError extends errors.ValidationError {
  /** @param inBin whether lists hide the other one, so that nobody would find it */
  constructor(inBin = false) {
    const wrong = `belongs to another contact${inBin ? ', which is in the bin' : ''}`;
    const { message, details } = fieldError('email', wrong);
    super(message, details);
  }
}

/** As `emailKey`, of the slug of a tag. */
const slugKey = (slug: unknown): string | null =>
  typeof slug === 'string' && slug !== '' ? digestOf(slug) : null;

/** A value that only one record of a type may have. */
interface Unique {
  attribute: string;
  /** The column that the database compares. */
  key: string;
  keyOf(value: unknown): string | null;
  /** What the databases say of the unique index: its name, or on SQLite its column. */
  conflict: RegExp;
  taken(): errors.ValidationError;
}

/** By content type. */
const UNIQUE: Readonly<Record<string, Unique>> = {
  [CONTACT]: {
    attribute: 'email',
    key: 'email_key',
    keyOf: emailKey,
    conflict: /switchboard_contacts_email\b|switchboard_contacts\.email_key\b/,
    taken: () => new EmailTakenError(),
  },
  [TAG]: {
    attribute: 'slug',
    key: 'slug_key',
    keyOf: slugKey,
    conflict: /switchboard_tags_slug\b|switchboard_tags\.slug_key\b/,
    taken: () => fieldError('slug', 'belongs to another tag'),
  },
};

const isSlugConflict = (error: unknown): boolean => isDuplicate(error, UNIQUE[TAG]?.conflict);

/** Whether a tag was refused for its slug, by the host's own look or by the index. */
export const isSlugTaken = (error: unknown): boolean => {
  if (isSlugConflict(error)) return true;
  if (!(error instanceof errors.ValidationError)) return false;
  const { errors: found } = error.details as {
    errors?: { path?: unknown[]; message?: string }[];
  };
  return (found ?? []).some(
    ({ path, message }) => path?.[0] === 'slug' && /unique|another tag/.test(message ?? '')
  );
};

interface DocumentCall {
  uid: string;
  action: string;
  params: { documentId?: string; data?: Data };
}

/** @throws EmailTakenError where another contact has the address that a call gives. */
const refuseTakenEmail = async (app: App, call: DocumentCall): Promise<void> => {
  const { action } = call;
  if (!['create', 'update', 'clone'].includes(action)) return;
  if (action === 'clone' && call.params.data?.email === undefined) {
    call.params = { ...call.params, data: { ...call.params.data, email: null } };
  }
  const key = emailKey(call.params.data?.email);
  if (key === null) return;
  const [taken] = (await app.strapi.db
    .queryBuilder(CONTACT)
    .init({ select: ['id', 'documentId', 'trashed_at'], where: { email_key: key }, limit: 1 })
    .execute()) as { documentId: string; trashed_at: unknown }[];
  if (!taken || (action === 'update' && taken.documentId === call.params.documentId)) return;
  throw new EmailTakenError(taken.trashed_at !== null);
};

/**
 * Refuses a second contact of one address, and a second tag of one slug, with an answer that a person
 * can read, whether the other one is there already or is met at the unique index, which makes it sure.
 * No transaction, and so no lock, begins here: a site's own middlewares come after this one, and may
 * well use a connection.
 */
export const refuseTaken = (app: App): void => {
  app.strapi.documents.use(async (context, next) => {
    const unique = UNIQUE[context.uid];
    if (!unique) return next();
    if (context.uid === CONTACT) await refuseTakenEmail(app, context as unknown as DocumentCall);
    try {
      return await next();
    } catch (error) {
      throw isDuplicate(error, unique.conflict) ? unique.taken() : error;
    }
  });
};

/**
 * Gives tags of version 0.2 their unique key, at every boot: a node of that version may still make
 * some. The second tag of a slug gets another one. Each row by itself, so it may be ended at any
 * moment, and several nodes may do it at once.
 */
export const settleTagSlugs = async (app: App): Promise<void> => {
  const tags = () => app.db.pool.table('switchboard_tags');
  const found = (await tags()
    .select('id', 'slug')
    .whereNull('slug_key')
    .whereNotNull('slug')
    .andWhere('slug', '<>', '')
    .orderBy('id')) as { id: number; slug: string }[];
  /** @returns whether nobody else has it; a row that somebody has changed meanwhile is left alone */
  const take = async (row: { id: number; slug: string }, slug: string): Promise<boolean> => {
    try {
      await tags()
        .where(row)
        .whereNull('slug_key')
        .update({ slug, slug_key: slugKey(slug) });
      return true;
    } catch (error) {
      if (!isSlugConflict(error)) throw error;
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

/** By content type. */
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

interface UpdateEvent extends WriteEvent {
  params: WriteEvent['params'] & { data?: Data | Data[]; where?: Data };
}

const giveKey = (uid: string, data: Data): void => {
  const unique = UNIQUE[uid];
  const value = unique && data[unique.attribute];
  if (unique && value !== undefined) data[unique.key] = unique.keyOf(value);
};

/** Completes new rows; a date that is given stays (an import knows better than the clock). */
const completeNew = ({ model: { uid }, params }: UpdateEvent): void => {
  const now = new Date();
  for (const data of Array.isArray(params.data) ? params.data : [params.data ?? {}]) {
    giveKey(uid, data);
    for (const { status, value, date } of DERIVED_DATES[uid] ?? []) {
      if (data[status] === value) data[date] ??= now;
    }
  }
};

/** Completes an update, and sets the date of a status on the records that it brings into it. */
const completeChanged = async (app: App, event: UpdateEvent): Promise<void> => {
  const { uid } = event.model;
  const { data } = event.params;
  if (!data || Array.isArray(data)) return;
  giveKey(uid, data);
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
  // Of several that match, the host may change one: from here on the condition names it.
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

/** Keeps the derived columns of the plugin's own types. */
export const keepDerivedColumns = (app: App): void => {
  const onUpdate = (event: UpdateEvent): Promise<void> => completeChanged(app, event);
  listenToWrites(app.strapi, [...Object.keys(DERIVED_DATES), TAG], {
    beforeCreate: completeNew,
    beforeCreateMany: completeNew,
    beforeUpdate: onUpdate,
    beforeUpdateMany: onUpdate,
  });
};

const TABLE = 'switchboard_email_locks';
const BUCKETS = 256;

/** Rows that are there to be locked and for nothing else. */
export const emailLockTable: PlainTable = {
  tableName: TABLE,
  attributes: { id: { type: 'increments' }, uses: { type: 'biginteger' } },
};

/** Makes the rows once; another node may be doing the same. */
export const prepareEmailLocks = async (app: App): Promise<void> => {
  const db = await app.db.current();
  const rows = Array.from({ length: BUCKETS }, (_none, index) => ({ id: index + 1, uses: 0 }));
  await db.table(TABLE).insert(rows).onConflict('id').ignore();
};

const bucketOf = (key: string): number => (Number.parseInt(key.slice(0, 6), 16) % BUCKETS) + 1;

const isSqlite = (app: App): boolean => app.db.client === 'sqlite';

/** The rows of some addresses, to lock; null where no address is given. */
const rowsOf = async (app: App, emails: readonly unknown[]) => {
  const keys = emails.map(emailKey).filter((key) => key !== null);
  const buckets = [...new Set(keys.map(bucketOf))];
  if (buckets.length === 0) return null;
  const db = await app.db.current();
  return { query: db.table(TABLE).whereIn('id', buckets), count: buckets.length };
};

/** SQLite locks no rows: a transaction that begins with a write is the only writer from there on. */
const becomeWriter = async (query: Knex.QueryBuilder): Promise<void> => {
  await query.increment('uses', 1);
};

/**
 * Holds whoever comes with this address until the current transaction ends. A row that exists,
 * found by its primary key: that waits on every server and has no gap to lock. Call it before the
 * transaction reads, where that can be: MySQL goes on reading what was there when it first read.
 */
export const lockEmail = async (app: App, email: string): Promise<void> => {
  const rows = await rowsOf(app, [email]);
  if (!rows) return;
  if (isSqlite(app)) await becomeWriter(rows.query);
  else await rows.query.select('id').forUpdate();
};

/**
 * Does the same for many addresses, without waiting: who waits while it holds some of them could
 * wait for a transaction that waits for those, such as one that saves two forms.
 * @returns false where somebody holds one; the transaction is then to end and to begin again.
 */
export const tryLockEmails = async (app: App, emails: readonly string[]): Promise<boolean> => {
  const rows = await rowsOf(app, emails);
  if (!rows) return true;
  if (isSqlite(app)) {
    await becomeWriter(rows.query);
    return true;
  }
  const locked = (await rows.query.select('id').forUpdate().skipLocked()) as unknown[];
  return locked.length === rows.count;
};

/**
 * Runs a write that gives a contact this address, under the address' lock and in a transaction that
 * begins with it. Within a caller's transaction there is no lock: one that makes several contacts
 * would take several, in an order of its own, and could wait for another such for ever. There the
 * unique index decides, once the first of them has ended.
 */
export const withEmailLock = <T>(app: App, email: unknown, work: () => Promise<T>): Promise<T> => {
  if (typeof email !== 'string' || emailKey(email) === null || app.db.inTransaction())
    return work();
  return app.db.transaction(async () => {
    await lockEmail(app, email);
    return work();
  });
};
