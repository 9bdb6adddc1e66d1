import { randomBytes } from 'node:crypto';
import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import type { ApplicationPassword } from '../../../shared/contracts/access';
import { currentExecutor, type Executor, table } from '../database/connection';
import { inRetriedTransaction } from '../database/retry';
import { isoTime, isoTimeOrNull } from '../runtime/text';
import {
  APPLICATION_PASSWORDS_TABLE,
  type ApplicationPasswordRow,
} from './application-password-table';
import { generateApplicationPassword, hashApplicationPassword } from './rules/application-password';

/** A request a second must not be a write a second: the time of last use is kept to the minute. */
const LAST_USED_PRECISION_MS = 60_000;

/** Application passwords of admin users: made, listed, revoked, found by what was typed. */
export interface ApplicationPasswordsService {
  /** Newest first. */
  list(userId: number): Promise<ApplicationPassword[]>;
  /** @returns the password in clear, the only time anybody sees it. */
  create(userId: number, name: string): Promise<{ id: number; name: string; password: string }>;
  /** @returns what was revoked, or null where that user has no such password. */
  revoke(userId: number, id: number): Promise<ApplicationPassword | null>;
  /** Forgets all passwords of users that are being deleted: ids may be given out again. */
  revokeAllOf(userIds: readonly number[]): Promise<void>;
  /** The password that was typed, whoever's it is; null where there is none such. */
  findByPassword(
    typed: string
  ): Promise<{ id: number; userId: number; lastUsedAt: number | null } | null>;
  /** Notes a use, at most once a minute. */
  touch(password: { id: number; lastUsedAt: number | null }): Promise<void>;
}

const toContract = (row: ApplicationPasswordRow): ApplicationPassword => ({
  id: row.id,
  name: row.name,
  created_at: isoTime(Number(row.created_at)),
  last_used_at: isoTimeOrNull(row.last_used_at),
});

export const createApplicationPasswordsService = ({
  strapi,
}: {
  strapi: Core.Strapi;
}): ApplicationPasswordsService => {
  // Not an async function that returns the builder: a builder is thenable, awaiting it would run it.
  const rows = (executor: Executor): Knex.QueryBuilder =>
    table(strapi, executor, APPLICATION_PASSWORDS_TABLE);
  const here = (): Promise<Executor> => currentExecutor(strapi);
  // The host refuses to boot without this salt; read late because it may come from the environment.
  const hash = (typed: string): string =>
    hashApplicationPassword(typed, strapi.config.get<string>('admin.apiToken.salt'));

  return {
    async list(userId) {
      const found: ApplicationPasswordRow[] = await rows(await here())
        .where({ user_id: userId })
        .orderBy('id', 'desc');
      return found.map(toContract);
    },

    async create(userId, name) {
      const password = generateApplicationPassword(randomBytes);
      const hashed = hash(password);
      return inRetriedTransaction(strapi, async ({ trx }) => {
        await rows(trx).insert({
          user_id: userId,
          name,
          hash: hashed,
          created_at: Date.now(),
          last_used_at: null,
        });
        // Read back by the hash: what an insert returns differs between databases.
        const row: ApplicationPasswordRow = await rows(trx).where({ hash: hashed }).first();
        return { id: row.id, name: row.name, password };
      });
    },

    async revoke(userId, id) {
      return inRetriedTransaction(strapi, async ({ trx }) => {
        const mine = { id, user_id: userId };
        const row: ApplicationPasswordRow | undefined = await rows(trx).where(mine).first();
        if (!row) return null;
        await rows(trx).where(mine).delete();
        return toContract(row);
      });
    },

    async revokeAllOf(userIds) {
      if (userIds.length > 0)
        await rows(await here())
          .whereIn('user_id', [...userIds])
          .delete();
    },

    async findByPassword(typed) {
      const row: ApplicationPasswordRow | undefined = await rows(await here())
        .where({ hash: hash(typed) })
        .first();
      if (!row) return null;
      const lastUsedAt = row.last_used_at === null ? null : Number(row.last_used_at);
      return { id: row.id, userId: row.user_id, lastUsedAt };
    },

    async touch({ id, lastUsedAt }) {
      const now = Date.now();
      if (lastUsedAt !== null && now - lastUsedAt < LAST_USED_PRECISION_MS) return;
      // Of requests that come at once, one writes.
      await rows(await here())
        .where({ id })
        .where((builder: Knex.QueryBuilder) => {
          builder
            .whereNull('last_used_at')
            .orWhere('last_used_at', '<=', now - LAST_USED_PRECISION_MS);
        })
        .update({ last_used_at: now });
    },
  };
};

export const getApplicationPasswords = (strapi: Core.Strapi): ApplicationPasswordsService =>
  strapi.service(
    'plugin::switchboard.application-passwords'
  ) as unknown as ApplicationPasswordsService;
