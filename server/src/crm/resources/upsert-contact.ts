import { isDeepStrictEqual } from 'node:util';
import type { Where } from '../../database/written-rows';
import { inTurn } from '../../database/transactions';
import { emailKey, EmailTakenError, lockEmail, normalizeEmail } from '../contact-integrity';
import { getInspected } from '../mapping/sources';
import type { Payload } from '../rules';
import { crmRecords } from './crm-records';
import { keptInput } from './to-data';
import type { App } from '../../app';

/** The condition that finds the contact of an address, whatever its case; null: no e-mail is kept. */
const emailWhere = (app: App, email: string): Where | null => {
  const { source } = getInspected(app, 'contact');
  const attribute = source.fields.find(({ path }) => path === 'email')?.attribute;
  // Nobody has such an address, and PostgreSQL would refuse to look for it.
  if (!attribute || email.includes('\0')) return null;
  return source.own
    ? { email_key: emailKey(email) }
    : { [attribute]: { $eqi: normalizeEmail(email) } };
};

/** The id of the contact of an address; the oldest where a site's own type allows several. */
export const findByEmail = async (app: App, email: string): Promise<string | null> => {
  const where = emailWhere(app, email);
  if (!where) return null;
  const rows = (await app.strapi.db
    .queryBuilder(getInspected(app, 'contact').uid)
    .init({ select: ['id', 'documentId'], where, orderBy: { id: 'asc' }, limit: 1 })
    .execute()) as { documentId: string }[];
  return rows[0]?.documentId ?? null;
};

interface Upserted {
  contact: Payload;
  created: boolean;
  /** An existing contact was changed. */
  changed: boolean;
}

type Input = Readonly<Record<string, unknown>>;

interface UpsertOptions {
  /** Values for a contact that does not exist yet, unless the input has others. */
  onlyNew?: Input;
  /** The part of the input that applies to a contact that exists: all of it, if not given. */
  forKnown?: (contact: Payload) => Input;
}

/**
 * Brings the contact of an address under the current transaction's hand. MySQL reads what was there
 * when the transaction began to read; a contact that came since is seen by a locking read, and by
 * later reads once the transaction has changed it. It has to become a different row for that: an
 * update to the values that are there, such as the same millisecond, changes nothing.
 *
 * Only where there is one: who finds none locks a gap there, in which two forms with new addresses
 * would keep each other from inserting.
 */
const claimByEmail = async (app: App, email: string): Promise<Payload | null> => {
  const { uid } = getInspected(app, 'contact');
  const where = emailWhere(app, email);
  if (!where) return null;
  const [row] = (await app.strapi.db
    .queryBuilder(uid)
    .init({ select: ['id', 'documentId', 'updatedAt'], where, orderBy: { id: 'asc' }, limit: 1 })
    .forUpdate()
    .execute()) as { id: number; documentId: string; updatedAt: string | Date | null }[];
  if (!row) return null;
  const last = row.updatedAt ? new Date(row.updatedAt).getTime() : 0;
  const updatedAt = new Date(Math.max(Date.now(), last + 1));
  await app.strapi.db.queryBuilder(uid).where({ id: row.id }).update({ updatedAt }).execute();
  return crmRecords(app, 'contact').find(row.documentId);
};

/** Finds the contact of an address, or makes it: also where one comes in between. */
const findOrCreate = async (
  app: App,
  email: string,
  input: Input
): Promise<{ contact: Payload; created: boolean }> => {
  const known = (await findByEmail(app, email)) ? await claimByEmail(app, email) : null;
  if (known) return { contact: known, created: false };
  try {
    const create = () => crmRecords(app, 'contact').create(input);
    return { contact: await app.db.savepoint(create), created: true };
  } catch (error) {
    if (!(error instanceof EmailTakenError)) throw error;
    // Made by somebody who holds no lock: in a larger transaction, or past the document service.
    const contact = await claimByEmail(app, email);
    if (!contact) throw error;
    return { contact, created: false };
  }
};

/** Objects of which an input completes the keys that it names. */
const BAGS: ReadonlySet<string> = new Set(['fields', 'address']);

/** The changes that an input would make; values that it leaves empty never empty a contact's. */
export const differences = (contact: Payload, input: Input): Record<string, unknown> => {
  const changes: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(input)) {
    if (key === 'email' || value === null || value === undefined || value === '') continue;
    if (BAGS.has(key)) {
      const merged = { ...(contact[key] as object | null), ...(value as object) };
      if (!isDeepStrictEqual(merged, contact[key])) changes[key] = merged;
    } else if (!isDeepStrictEqual(contact[key], value)) {
      changes[key] = value;
    }
  }
  return changes;
};

const isEmpty = (value: unknown): boolean => value === null || value === undefined || value === '';

/** The statuses of a contact that was never asked: a form's consent may decide them. */
const UNDECIDED: ReadonlySet<unknown> = new Set([null, undefined, '', 'pending']);

/**
 * The part of an input that fills a contact's empty values: each key of `fields` and `address` by itself.
 * For input of somebody who may not be the contact, and so must not change what is there.
 */
export const completion = (contact: Payload, input: Input): Record<string, unknown> => {
  const filled: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(input)) {
    const present = contact[key];
    if (BAGS.has(key)) {
      const bag = (present ?? {}) as Record<string, unknown>;
      const missing = Object.entries((value ?? {}) as Record<string, unknown>).filter(
        ([name]) => !Object.hasOwn(bag, name) || isEmpty(bag[name])
      );
      if (missing.length > 0) filled[key] = Object.fromEntries(missing);
    } else if (key === 'status' ? UNDECIDED.has(present) : isEmpty(present)) {
      filled[key] = value;
    }
  }
  return filled;
};

/**
 * Finds the contact of an e-mail address, whatever its case, and completes it, or makes it. Two that come
 * at once make one contact. Call it within `withOrigin` where a form or an import is at work. Values that
 * the site's contacts do not have are left out (`keptInput`).
 * @param input a contact as REST takes it, with a valid `email`
 */
export const upsertContact = (
  app: App,
  input: Input & { email: string },
  { onlyNew = {}, forKnown = () => input }: UpsertOptions = {}
): Promise<Upserted> =>
  app.db.transaction(() =>
    inTurn(app.strapi, async () => {
      await lockEmail(app, input.email);
      const { source } = getInspected(app, 'contact');
      const all = keptInput(app, source, { ...onlyNew, ...input });
      const given = Object.entries(all).filter(([, value]) => value !== null);
      const found = await findOrCreate(app, input.email, Object.fromEntries(given));
      if (found.created) return { ...found, changed: false };
      const known = keptInput(app, source, forKnown(found.contact));
      const changes = differences(found.contact, known);
      if (Object.keys(changes).length === 0) return { ...found, changed: false };
      const contact = await crmRecords(app, 'contact').update(found.contact.id, changes);
      return { contact, created: false, changed: true };
    })
  );
