import { createHash } from 'node:crypto';
import { errors } from '@strapi/utils';
import type { Knex } from 'knex';
import { isDuplicate } from '../database/retry';
import { copyParamsOf, lockWritten, type WriteEvent } from '../database/written-rows';
import type { PlainTable } from '../database/tables/plain-tables';
import { slugKey, TAG } from './tag-slugs';
import type { App } from '../app';

/** How addresses are compared: without regard to case or to spaces around them. */
export const normalizeEmail = (email: string): string => email.trim().toLowerCase();

/**
 * What the database compares for uniqueness. A digest, because collations differ: MySQL's default
 * one would take `jose@…` and `josé@…` for one address.
 * @returns null where there is no address: many contacts may have none.
 */
export const emailKey = (email: unknown): string | null =>
  typeof email === 'string' && email.trim() !== ''
    ? createHash('sha256').update(normalizeEmail(email)).digest('hex')
    : null;

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
  'plugin::switchboard.contact': [
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

type Data = Record<string, unknown>;

/** Dates of a new record; one that is given stays (an import knows better than the clock). */
const deriveDates = (uid: string, data: Data, now: Date): void => {
  for (const { status, value, date } of DERIVED_DATES[uid] ?? []) {
    if (data[status] === value) data[date] ??= now;
  }
};

/** The derived that an update may set on the records that do not have the status yet. */
const derivedDateToSet = (uid: string, data: Data): DerivedDate | null =>
  (DERIVED_DATES[uid] ?? []).find(
    ({ status, value, date }) => data[status] === value && data[date] === undefined
  ) ?? null;

/** Empties the dates of a status that an update leaves: a deal that is open again was not closed. */
const clearLeftDates = (uid: string, data: Data): void => {
  const dates = (DERIVED_DATES[uid] ?? []).filter(({ current }) => current);
  for (const { status, date } of dates) {
    const given = data[status];
    if (given === undefined || data[date] !== undefined) continue;
    if (!dates.some((derived) => derived.value === given)) data[date] = null;
  }
};

const CONTACT = 'plugin::switchboard.contact';

/** A 400 that names the field, in the form in which the content manager shows it beside it. */
export class EmailTakenError extends errors.ValidationError {
  /** @param inBin whether lists hide the other one, so that nobody would find it */
  constructor(inBin = false) {
    const message = `belongs to another contact${inBin ? ', which is in the bin' : ''}`;
    super(`email: ${message}`, {
      errors: [{ path: ['email'], message, name: 'ValidationError' }],
    });
  }
}

/** What the databases say of the unique index: its name, or on SQLite its column. */
const CONFLICT = /switchboard_contacts_email\b|switchboard_contacts\.email_key\b/;

/** @throws EmailTakenError where another contact has the address. */
const refuseTaken = async (app: App, key: string, self: string | undefined): Promise<void> => {
  const [taken] = (await app.strapi.db
    .queryBuilder(CONTACT)
    .init({ select: ['id', 'documentId', 'trashed_at'], where: { email_key: key }, limit: 1 })
    .execute()) as { documentId: string; trashed_at: unknown }[];
  if (taken === undefined || taken.documentId === self) return;
  throw new EmailTakenError(taken.trashed_at !== null);
};

interface DocumentContext {
  uid: string;
  action: string;
  params: { documentId?: string; data?: Data };
}

/**
 * Refuses a second contact of one address with an answer that a person can read, whether the other
 * one is there already or is met at the unique index, which makes it sure. No transaction, and so no
 * lock, begins here: a site's own middlewares come after this one, and may well use a connection.
 */
export const refuseTakenEmails = (app: App): void => {
  app.strapi.documents.use(async (context, next) => {
    const call = context as unknown as DocumentContext;
    const { uid, action } = call;
    if (uid !== CONTACT || !['create', 'update', 'clone'].includes(action)) return next();
    if (action === 'clone' && call.params.data?.email === undefined) {
      call.params = { ...call.params, data: { ...call.params.data, email: null } };
    }
    const { params } = call;
    const key = emailKey(params.data?.email);
    if (key === null) return next();
    const self = action === 'update' ? params.documentId : undefined;
    await refuseTaken(app, key, self);
    try {
      return await next();
    } catch (error) {
      throw isDuplicate(error, CONFLICT) ? new EmailTakenError() : error;
    }
  });
};

export { refuseTakenSlugs, settleTagSlugs } from './tag-slugs';

interface UpdateEvent extends WriteEvent {
  params: WriteEvent['params'] & { data?: Data | Data[]; where?: Data };
}

/** The columns that the database compares for uniqueness. */
const giveKeys = (uid: string, data: Data): void => {
  if (uid === CONTACT && data.email !== undefined) data.email_key = emailKey(data.email);
  if (uid === TAG && data.slug !== undefined) data.slug_key = slugKey(data.slug);
};

const complete = (uid: string, data: Data, now: Date): void => {
  giveKeys(uid, data);
  deriveDates(uid, data, now);
};

/** Sets the date of a status on the records that an update is about to bring into it. */
const deriveOnUpdate = async (app: App, event: UpdateEvent): Promise<void> => {
  const { uid } = event.model;
  const { data } = event.params;
  if (!data || Array.isArray(data)) return;
  giveKeys(uid, data);
  clearLeftDates(uid, data);
  const derived = derivedDateToSet(uid, data);
  if (!derived) return;
  // Of several that match, the host may change one.
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
  const models = [...Object.keys(DERIVED_DATES), TAG];
  copyParamsOf(app.strapi, models);
  const onCreate = ({ model, params }: UpdateEvent): void => {
    const now = new Date();
    const rows = Array.isArray(params.data) ? params.data : [params.data ?? {}];
    for (const data of rows) complete(model.uid, data, now);
  };
  const onUpdate = (event: UpdateEvent): Promise<void> => deriveOnUpdate(app, event);
  const subscriber = {
    models,
    beforeCreate: onCreate,
    beforeCreateMany: onCreate,
    beforeUpdate: onUpdate,
    beforeUpdateMany: onUpdate,
  };
  app.strapi.db.lifecycles.subscribe(
    subscriber as unknown as Parameters<typeof app.strapi.db.lifecycles.subscribe>[0]
  );
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
