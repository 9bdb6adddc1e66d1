import type { Core } from '@strapi/strapi';
import { getApplicationPasswords } from './application-passwords';

/** Forgets the application passwords of admin users that are deleted, in the same transaction. */
export const cleanUpDeletedUsers = (strapi: Core.Strapi): (() => void) => {
  const forget = async (event: { params: { where?: unknown } }): Promise<void> => {
    const users: { id: number }[] = await strapi.db
      .query('admin::user')
      .findMany({ where: event.params.where as Record<string, unknown>, select: ['id'] });
    await getApplicationPasswords(strapi).revokeAllOf(users.map(({ id }) => id));
  };
  return strapi.db.lifecycles.subscribe({
    models: ['admin::user'],
    beforeDelete: forget,
    beforeDeleteMany: forget,
  });
};
