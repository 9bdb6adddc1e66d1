import type { Core } from '@strapi/strapi';
import { type WriteEvent, writtenRows } from '../database/written-rows';
import { getApplicationPasswords } from './application-passwords';

/** Forgets the application passwords of admin users that are deleted, in the same transaction. */
export const cleanUpDeletedUsers = (strapi: Core.Strapi): (() => void) => {
  const forget = async (event: WriteEvent): Promise<void> => {
    // On a copy: what the caller gave stays as it is.
    const users = await writtenRows(strapi, { ...event, params: { ...event.params } });
    await getApplicationPasswords(strapi).revokeAllOf(users.map(({ id }) => id));
  };
  return strapi.db.lifecycles.subscribe({
    models: ['admin::user'],
    beforeDelete: forget,
    beforeDeleteMany: forget,
  });
};
