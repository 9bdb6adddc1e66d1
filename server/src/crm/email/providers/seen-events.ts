import { createHash } from 'node:crypto';
import type { Core } from '@strapi/strapi';
import { currentExecutor, table } from '../../../database/connection';
import type { PlainTable } from '../../../database/tables/plain-tables';
import { SIGNATURE_WINDOW_MS } from './signed-time';

const TABLE = 'switchboard_email_seen';

/** Ids of what providers posted, so that a post that is made again counts once. */
export const seenEventsTable: PlainTable = {
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

const digestOf = (provider: string, id: string): string =>
  createHash('sha256').update(`${provider}\n${id}`).digest('hex');

const isSeen = async (strapi: Core.Strapi, digest: string): Promise<boolean> => {
  const executor = await currentExecutor(strapi);
  const known = (await table(strapi, executor, TABLE).where({ digest }).select('id')) as unknown[];
  return known.length > 0;
};

/**
 * Notes an id within the current transaction. @returns false where it was noted before. Should the
 * same one be noted by another request at this moment, the unique index fails this one; run again
 * (`inUniqueTransaction`), it finds it noted.
 */
export const noteSeen = async (
  strapi: Core.Strapi,
  provider: string,
  id: string,
  now: number
): Promise<boolean> => {
  const executor = await currentExecutor(strapi);
  const digest = digestOf(provider, id);
  if (await isSeen(strapi, digest)) return false;
  await table(strapi, executor, TABLE).insert({ digest, seen_at: now });
  return true;
};

/**
 * Whether a signed token may count with this content: when it comes for the first time, or again with
 * the same, within the current transaction.
 */
export const bindToken = async (
  strapi: Core.Strapi,
  provider: string,
  { token, content }: { token: string; content: string },
  now: number
): Promise<boolean> => {
  const withContent = `${token}\n${content}`;
  if (!(await noteSeen(strapi, `${provider} token`, token, now))) {
    return isSeen(strapi, digestOf(`${provider} token with`, withContent));
  }
  return noteSeen(strapi, `${provider} token with`, withContent, now);
};

/** Forgets what is older than any signature that still counts, twice over. */
export const forgetSeen = async (strapi: Core.Strapi, now: number): Promise<void> => {
  const executor = await currentExecutor(strapi);
  await table(strapi, executor, TABLE)
    .where('seen_at', '<', now - 2 * SIGNATURE_WINDOW_MS)
    .delete();
};
