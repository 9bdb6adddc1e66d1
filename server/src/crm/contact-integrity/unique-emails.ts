import type { Core } from '@strapi/strapi';
import { errors } from '@strapi/utils';
import { isDuplicate } from '../../database/errors/duplicate';
import { emailKey } from './email-key';

const CONTACT = 'plugin::switchboard.contact';

type Data = Record<string, unknown>;

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
const refuseTaken = async (
  strapi: Core.Strapi,
  key: string,
  self: string | undefined
): Promise<void> => {
  const [taken] = (await strapi.db
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
export const refuseTakenEmails = (strapi: Core.Strapi): void => {
  strapi.documents.use(async (context, next) => {
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
    await refuseTaken(strapi, key, self);
    try {
      return await next();
    } catch (error) {
      throw isDuplicate(error, CONFLICT) ? new EmailTakenError() : error;
    }
  });
};
