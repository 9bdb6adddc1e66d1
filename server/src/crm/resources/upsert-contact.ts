import type { Core } from '@strapi/strapi';
import { isDeepStrictEqual } from 'node:util';
import { inTransaction } from '../../database/connection';
import { getInspected } from '../sources/registry';
import type { Payload } from '../sources/serialize';
import { lockEmails } from '../upkeep/email-lock';
import { inSavepoint } from '../upkeep/savepoint';
import { EmailTakenError } from '../upkeep/unique-emails';
import { crmRecords } from './crm-records';
import { emailWhere, findByEmail } from './find-by-email';

export interface Upserted {
  contact: Payload;
  created: boolean;
  /** An existing contact was changed. */
  changed: boolean;
}

type Input = Readonly<Record<string, unknown>>;

/**
 * Brings the contact of an address under the current transaction's hand. MySQL reads what was there
 * when the transaction began to read; a contact that came since is seen by an update, and through it
 * by later reads. Only where there is one: an update that finds none locks a gap there, in which two
 * forms with new addresses would keep each other from inserting.
 */
const claimByEmail = async (strapi: Core.Strapi, email: string): Promise<Payload | null> => {
  const { uid } = getInspected(strapi, 'contact');
  const where = emailWhere(strapi, email);
  if (!where) return null;
  await strapi.db.queryBuilder(uid).where(where).update({ updatedAt: new Date() }).execute();
  const id = await findByEmail(strapi, email);
  return id ? crmRecords(strapi, 'contact').find(id) : null;
};

/** Finds the contact of an address, or makes it: also where one comes in between. */
const findOrCreate = async (
  strapi: Core.Strapi,
  email: string,
  input: Input
): Promise<{ contact: Payload; created: boolean }> => {
  const known = (await findByEmail(strapi, email)) ? await claimByEmail(strapi, email) : null;
  if (known) return { contact: known, created: false };
  try {
    const create = () => crmRecords(strapi, 'contact').create(input);
    return { contact: await inSavepoint(strapi, create), created: true };
  } catch (error) {
    if (!(error instanceof EmailTakenError)) throw error;
    // Made by somebody who holds no lock: in a larger transaction, or past the document service.
    const contact = await claimByEmail(strapi, email);
    if (!contact) throw error;
    return { contact, created: false };
  }
};

/** What an input would change; values that it leaves empty never empty a contact's. */
const differences = (contact: Payload, input: Input): Record<string, unknown> => {
  const changes: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(input)) {
    if (key === 'email' || value === null || value === undefined || value === '') continue;
    if (key === 'fields') {
      const merged = { ...(contact.fields as object), ...(value as object) };
      if (!isDeepStrictEqual(merged, contact.fields)) changes.fields = merged;
    } else if (!isDeepStrictEqual(contact[key], value)) {
      changes[key] = value;
    }
  }
  return changes;
};

/**
 * Finds the contact of an e-mail address, whatever its case, and completes it, or makes it. Two that
 * come at once make one contact. Call it within `withOrigin` where a form or an import is at work.
 * @param input a contact as REST takes it, with a valid `email`
 * @param onlyNew values for a contact that does not exist yet
 */
export const upsertContact = (
  strapi: Core.Strapi,
  input: Input & { email: string },
  onlyNew: Input = {}
): Promise<Upserted> =>
  inTransaction(strapi, async () => {
    await lockEmails(strapi, [input.email]);
    const given = Object.entries({ ...onlyNew, ...input }).filter(([, value]) => value !== null);
    const found = await findOrCreate(strapi, input.email, Object.fromEntries(given));
    if (found.created) return { ...found, changed: false };
    const changes = differences(found.contact, input);
    if (Object.keys(changes).length === 0) return { ...found, changed: false };
    const contact = await crmRecords(strapi, 'contact').update(found.contact.id, changes);
    return { contact, created: false, changed: true };
  });
