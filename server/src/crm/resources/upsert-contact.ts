import { isDeepStrictEqual } from 'node:util';
import { inTurn } from '../../database/transactions';
import { emailKey, EmailTakenError, lockEmails, normalizeEmail } from '../contact-integrity';
import { type Entry, getInspected } from '../mapping/sources';
import { selectRows } from '../mapping/records';
import type { Payload } from '../rules';
import { crmRecords } from './crm-records';
import { keptInput } from './to-data';
import type { App } from '../../app';

/** The contact row of an address in any case, the oldest of several; undefined also if no e-mail is stored. */
const rowOf = async (app: App, email: string, lock = false): Promise<Entry | undefined> => {
  const { source, uid } = getInspected(app, 'contact');
  const attribute = source.fields.find(({ path }) => path === 'email')?.attribute;
  // No contact can have such an address, and PostgreSQL would refuse the query.
  if (!attribute || email.includes('\0')) return undefined;
  const where = source.own
    ? { email_key: emailKey(email) }
    : { [attribute]: { $eqi: normalizeEmail(email) } };
  const select = ['id', 'documentId', 'updatedAt'];
  const oldest = { select, where, orderBy: { id: 'asc' }, limit: 1 };
  const [row] = await selectRows<Entry>(app, uid, oldest, lock);
  return row;
};

/** The id of the contact of an address; null: there is none. */
export const findByEmail = async (app: App, email: string): Promise<string | null> => {
  const row = await rowOf(app, email);
  return row ? String(row.documentId) : null;
};

type Input = Readonly<Record<string, unknown>>;

/**
 * Locks the contact of an address. MySQL: a locking read sees contacts that are newer than the snapshot; later reads
 * see them once the transaction has changed the row to other values, so `updatedAt` never gets the same millisecond.
 * Call it only for an existing contact: on a missing row MySQL locks a gap, and two forms block each other.
 */
const claimByEmail = async (app: App, email: string): Promise<Payload | null> => {
  const { uid } = getInspected(app, 'contact');
  const row = await rowOf(app, email, true);
  if (!row) return null;
  const last = new Date((row.updatedAt as string | Date | null) ?? 0).getTime();
  const updatedAt = new Date(Math.max(Date.now(), last + 1));
  await app.strapi.db.queryBuilder(uid).where({ id: row.id }).update({ updatedAt }).execute();
  return crmRecords(app, 'contact').find(String(row.documentId));
};

/** Finds the contact of an address, or creates it, also if another writer creates it meanwhile. */
const findOrCreate = async (app: App, email: string, input: Input) => {
  const known = (await findByEmail(app, email)) ? await claimByEmail(app, email) : null;
  if (known) return { contact: known, created: false };
  try {
    const create = () => crmRecords(app, 'contact').create(input);
    return { contact: await app.db.savepoint(create), created: true };
  } catch (error) {
    if (!(error instanceof EmailTakenError)) throw error;
    // Created by a writer without the lock: in a larger transaction, or past the document service.
    const contact = await claimByEmail(app, email);
    if (!contact) throw error;
    return { contact, created: false };
  }
};

const isEmpty = (value: unknown): boolean => (value ?? '') === '';

/** Objects of which an input completes the keys that it names. */
const BAGS: ReadonlySet<string> = new Set(['fields', 'address']);

/** The changes that an input would make; values that it leaves empty never empty a contact's. */
export const differences = (contact: Payload, input: Input): Record<string, unknown> => {
  const changes: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(input)) {
    if (key === 'email' || isEmpty(value)) continue;
    if (BAGS.has(key)) {
      const merged = { ...(contact[key] as object | null), ...(value as object) };
      if (!isDeepStrictEqual(merged, contact[key])) changes[key] = merged;
    } else if (!isDeepStrictEqual(contact[key], value)) {
      changes[key] = value;
    }
  }
  return changes;
};

/** The part of an input that fills empty values, for unverified senders; merges `fields` and `address` key by key. */
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
    } else if (isEmpty(present) || (key === 'status' && present === 'pending')) {
      // A form's consent may decide the status of a contact that was never asked.
      filled[key] = value;
    }
  }
  return filled;
};

/**
 * Finds the contact of an e-mail address in any case and completes it, or creates it; concurrent calls create one
 * contact. Values that the site does not store are dropped (`keptInput`).
 * @param input a contact in REST format, with a valid `email`
 * @param onlyNew values for a new contact, unless the input has others
 * @param forKnown the part of the input that applies to an existing contact
 */
export const upsertContact = (
  app: App,
  input: Input & { email: string },
  { onlyNew, forKnown }: { onlyNew: Input; forKnown(contact: Payload): Input }
): Promise<{ contact: Payload; created: boolean; changed: boolean }> =>
  app.db.transaction(() =>
    inTurn(app.strapi, async () => {
      await lockEmails(app, [input.email]);
      const { source } = getInspected(app, 'contact');
      const all = keptInput(app, source, { ...onlyNew, ...input });
      const given = Object.entries(all).filter(([, value]) => value !== null);
      const found = await findOrCreate(app, input.email, Object.fromEntries(given));
      if (found.created) return { ...found, changed: false };
      const changes = differences(found.contact, keptInput(app, source, forKnown(found.contact)));
      if (Object.keys(changes).length === 0) return { ...found, changed: false };
      const contact = await crmRecords(app, 'contact').update(found.contact.id, changes);
      return { contact, created: false, changed: true };
    })
  );
