import type { Core } from '@strapi/strapi';
import { copyParamsOf } from '../database/own-params';
import { type WriteEvent, writtenRows } from '../database/written-rows';
import { getApplicationPasswords } from './application-passwords';

/** Forgets the application passwords of admin users that are deleted, in the same transaction. */
export const cleanUpDeletedUsers = (strapi: Core.Strapi): (() => void) => {
  copyParamsOf(strapi, ['admin::user']);
  const forget = async (event: WriteEvent): Promise<void> => {
    const users = await writtenRows(strapi, event);
    await getApplicationPasswords(strapi).revokeAllOf(users.map(({ id }) => id));
  };
  return strapi.db.lifecycles.subscribe({
    models: ['admin::user'],
    beforeDelete: forget,
    beforeDeleteMany: forget,
  });
};
