import type { Core } from '@strapi/strapi';
import { isDeepStrictEqual } from 'node:util';
import { inTransaction } from '../../database/connection';
import { getInspected } from '../sources/registry';
import type { Payload } from '../sources/serialize';
import { lockEmail } from '../upkeep/email-lock';
import { crmRecords } from './crm-records';
import { emailWhere, findByEmail } from './find-by-email';

export interface Upserted {
  contact: Payload;
  created: boolean;
  /** An existing contact was changed. */
  changed: boolean;
}

type Input = Readonly<Record<string, unknown>>;

/** Brings the contact of an address under the current transaction's hand and tells its id. */
const claimByEmail = async (strapi: Core.Strapi, email: string): Promise<string | null> => {
  const { uid } = getInspected(strapi, 'contact');
  const where = emailWhere(strapi, email);
  if (!where) return null;
  // MySQL reads what was there when the transaction began to read. A contact that was committed
  // while this one waited for the lock is seen by an update, and through it by later reads.
  await strapi.db.queryBuilder(uid).where(where).update({ updatedAt: new Date() }).execute();
  return findByEmail(strapi, email);
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
    await lockEmail(strapi, input.email);
    const contacts = crmRecords(strapi, 'contact');
    const id = await claimByEmail(strapi, input.email);
    const contact = id ? await contacts.find(id) : null;
    if (!contact) {
      const given = Object.entries({ ...onlyNew, ...input }).filter(([, value]) => value !== null);
      return {
        contact: await contacts.create(Object.fromEntries(given)),
        created: true,
        changed: false,
      };
    }
    const changes = differences(contact, input);
    if (Object.keys(changes).length === 0) return { contact, created: false, changed: false };
    return { contact: await contacts.update(contact.id, changes), created: false, changed: true };
  });
