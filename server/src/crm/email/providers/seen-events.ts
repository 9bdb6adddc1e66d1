import { createHash } from 'node:crypto';
import type { Core } from '@strapi/strapi';
import { currentExecutor, table } from '../../../database/connection';
import type { TableModel } from '../../../room';
import { MAILGUN_WINDOW_MS } from './mailgun';

const TABLE = 'switchboard_email_seen';

/** Ids of what providers posted, so that a post that is made again counts once. */
export const seenEventsTable: TableModel = {
  uid: 'plugin::switchboard.email-seen',
  singularName: 'switchboard_email_seen',
  tableName: TABLE,
  attributes: {
    id: { type: 'increments' },
    digest: { type: 'string', column: { args: [64] } },
    seen_at: { type: 'biginteger' },
  },
  indexes: [
    { name: 'sb_email_seen_id', columns: ['digest'], type: 'unique' },
    { name: 'sb_email_seen_at', columns: ['seen_at'] },
  ],
};

/**
 * Notes an id within the current transaction. @returns false where it was noted before. Should the
 * same one be noted by another request at this moment, the unique index fails this one; the provider
 * then posts again and finds it seen.
 */
export const noteSeen = async (
  strapi: Core.Strapi,
  provider: string,
  id: string,
  now: number
): Promise<boolean> => {
  const executor = await currentExecutor(strapi);
  const digest = createHash('sha256').update(`${provider}\n${id}`).digest('hex');
  const known = (await table(strapi, executor, TABLE).where({ digest }).select('id')) as unknown[];
  if (known.length > 0) return false;
  await table(strapi, executor, TABLE).insert({ digest, seen_at: now });
  return true;
};

/** Forgets what no provider would post again. */
export const forgetSeen = async (strapi: Core.Strapi, now: number): Promise<void> => {
  const executor = await currentExecutor(strapi);
  await table(strapi, executor, TABLE)
    .where('seen_at', '<', now - 2 * MAILGUN_WINDOW_MS)
    .delete();
};
