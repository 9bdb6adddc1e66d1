import type { Core } from '@strapi/strapi';
import { getInspected } from '../mapping/registry';
import type { Where } from '../../database/matching-documents';
import { emailKey, normalizeEmail } from '../contact-integrity/email-key';

/** The condition that finds the contact of an address, whatever its case; null: no e-mail is kept. */
export const emailWhere = (strapi: Core.Strapi, email: string): Where | null => {
  const { source } = getInspected(strapi, 'contact');
  const attribute = source.fields.find(({ path }) => path === 'email')?.attribute;
  // Nobody has such an address, and PostgreSQL would refuse to look for it.
  if (!attribute || email.includes('\0')) return null;
  return source.own
    ? { email_key: emailKey(email) }
    : { [attribute]: { $eqi: normalizeEmail(email) } };
};

/** The id of the contact of an address; the oldest where a site's own type allows several. */
export const findByEmail = async (strapi: Core.Strapi, email: string): Promise<string | null> => {
  const where = emailWhere(strapi, email);
  if (!where) return null;
  const rows = (await strapi.db
    .queryBuilder(getInspected(strapi, 'contact').uid)
    .init({ select: ['id', 'documentId'], where, orderBy: { id: 'asc' }, limit: 1 })
    .execute()) as { documentId: string }[];
  return rows[0]?.documentId ?? null;
};
