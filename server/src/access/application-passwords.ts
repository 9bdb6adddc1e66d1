import { createHmac, randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import { errors, z } from '@strapi/utils';
import type { ApplicationPassword } from '../../../shared/contracts/access';
import type { PlainTable, RowOf } from '../database/tables/plain-tables';
import { type WriteEvent, writtenRows } from '../database/written-rows';
import { endpoint } from '../http/endpoint';
import { forbidStoring } from '../http/guarded-route';
import { labelText } from '../http/validation';
import { isoTime, isoTimeOrNull } from '../runtime/text';
import { adminApi } from './admin-actions';
import { ADMIN_SESSION_STRATEGY, requireAdminUser, strategyOf } from './current-admin-user';
import type { App } from '../app';
import type { Db } from '../database/db';

const APPLICATION_PASSWORDS_TABLE = 'switchboard_application_passwords';

/** Times are epoch milliseconds. `user_id` is an admin user's; `hash` is 128 hex digits. */
export const applicationPasswordTable = {
  tableName: APPLICATION_PASSWORDS_TABLE,
  attributes: {
    user_id: { type: 'integer' },
    name: { type: 'string' },
    hash: { type: 'string' },
    created_at: { type: 'biginteger' },
    last_used_at: { type: 'biginteger', null: true },
  },
  indexes: [
    { name: 'sb_app_password_hash', columns: ['hash'], type: 'unique' },
    { name: 'sb_app_password_user', columns: ['user_id'] },
  ],
} satisfies PlainTable;

type ApplicationPasswordRow = RowOf<typeof applicationPasswordTable>;

/** 32 characters that are easy to tell apart when copied by eye: no 0, 1, l or o. */
const ALPHABET = 'abcdefghijkmnpqrstuvwxyz23456789';
const GROUPS = 7;
const GROUP_LENGTH = 4;

/** Generates an application password for display: seven groups of four characters, 140 random bits. */
export const generateApplicationPassword = (random: (size: number) => Uint8Array): string =>
  Array.from({ length: GROUPS }, () =>
    Array.from(random(GROUP_LENGTH), (byte) => ALPHABET[byte % ALPHABET.length]).join('')
  ).join(' ');

/** The spaces are there for the eye only: with, without or with other ones, it is the same password. */
export const normalizeApplicationPassword = (typed: string): string => typed.replace(/\s+/g, '');

/**
 * The stored form of an application password: HMAC-SHA512 under the site's `admin.apiToken.salt`, as the
 * host stores its API tokens. A slow hash would cost every request and protect nothing: 140 random bits
 * cannot be guessed. It is looked up by index, so no secret is ever compared byte by byte.
 */
export const hashApplicationPassword = (typed: string, salt: string): string =>
  createHmac('sha512', salt).update(normalizeApplicationPassword(typed)).digest('hex');

/** A request a second must not be a write a second: the time of last use is kept to the minute. */
const LAST_USED_PRECISION_MS = 60_000;

const toContract = (row: ApplicationPasswordRow): ApplicationPassword => ({
  id: row.id,
  name: row.name,
  created_at: isoTime(Number(row.created_at)),
  last_used_at: isoTimeOrNull(row.last_used_at),
});

// Not an async function that returns the builder: a builder is thenable, awaiting it would run it.
const rows = (db: Db): Knex.QueryBuilder => db.table(APPLICATION_PASSWORDS_TABLE);

/** Application passwords of admin users: made, listed, revoked, found by what was typed. */
export class ApplicationPasswordsService {
  constructor(private readonly app: App) {}

  /** Newest first. */
  async list(userId: number): Promise<ApplicationPassword[]> {
    const found: ApplicationPasswordRow[] = await rows(await this.app.db.current())
      .where({ user_id: userId })
      .orderBy('id', 'desc');
    return found.map(toContract);
  }

  /** @returns the password in clear, the only time anybody sees it. */
  create(userId: number, name: string): Promise<{ id: number; name: string; password: string }> {
    const password = generateApplicationPassword(randomBytes);
    const hashed = this.hash(password);
    return this.app.db.retrying(async (tx) => {
      const times = { created_at: Date.now(), last_used_at: null };
      await rows(tx).insert({ user_id: userId, name, hash: hashed, ...times });
      // Read back by the hash: what an insert returns differs between databases.
      const row: ApplicationPasswordRow = await rows(tx).where({ hash: hashed }).first();
      return { id: row.id, name: row.name, password };
    });
  }

  /** @returns what was revoked, or null if that user has no such password. */
  revoke(userId: number, id: number): Promise<ApplicationPassword | null> {
    return this.app.db.retrying(async (tx) => {
      const own = { id, user_id: userId };
      const row: ApplicationPasswordRow | undefined = await rows(tx).where(own).first();
      if (!row) return null;
      await rows(tx).where(own).delete();
      return toContract(row);
    });
  }

  /** Forgets all passwords of users that are being deleted: ids may be given out again. */
  async revokeAllOf(userIds: readonly number[]): Promise<void> {
    if (userIds.length === 0) return;
    const db = await this.app.db.current();
    await rows(db).whereIn('user_id', userIds).delete();
  }

  /** The typed password of any user; null if there is none such. */
  async findByPassword(typed: string) {
    const row: ApplicationPasswordRow | undefined = await rows(await this.app.db.current())
      .where({ hash: this.hash(typed) })
      .first();
    if (!row) return null;
    const lastUsedAt = row.last_used_at === null ? null : Number(row.last_used_at);
    return { id: row.id, userId: row.user_id, lastUsedAt };
  }

  /** Notes a use, at most once a minute. */
  async touch({ id, lastUsedAt }: { id: number; lastUsedAt: number | null }): Promise<void> {
    const now = Date.now();
    if (lastUsedAt !== null && now - lastUsedAt < LAST_USED_PRECISION_MS) return;
    const latest = now - LAST_USED_PRECISION_MS;
    const isOld = (row: Knex.QueryBuilder): void => {
      row.whereNull('last_used_at').orWhere('last_used_at', '<=', latest);
    };
    // One of several concurrent requests writes.
    const db = await this.app.db.current();
    await rows(db).where({ id }).where(isOld).update({ last_used_at: now });
  }

  // The host refuses to boot without this salt; read late because it may come from the environment.
  private hash(typed: string): string {
    const salt = this.app.strapi.config.get<string>('admin.apiToken.salt');
    return hashApplicationPassword(typed, salt);
  }
}

export const getApplicationPasswords = (app: App): ApplicationPasswordsService =>
  app.strapi.service('plugin::switchboard.application-passwords') as never;

const MAY = { may: 'application-passwords.manage' } as const;
const MAKE = { ...MAY, body: z.strictObject({ name: labelText(100) }), status: 201 };

/** Everybody sees, makes and revokes their own application passwords only. */
export const applicationPasswordApi = adminApi({
  'application-passwords': {
    find: endpoint('GET /application-passwords', MAY, ({ app, ctx }) =>
      getApplicationPasswords(app).list(requireAdminUser(ctx).id)
    ),
    create: endpoint('POST /application-passwords', MAKE, ({ app, ctx, body }) => {
      const user = requireAdminUser(ctx);
      // An admin token may hold fewer permissions than its owner; an application password holds all.
      if (strategyOf(ctx) !== ADMIN_SESSION_STRATEGY) {
        const message = 'Log in to the admin panel to make an application password';
        throw new errors.ForbiddenError(message);
      }
      const { name } = body();
      forbidStoring(ctx);
      return getApplicationPasswords(app).create(user.id, name);
    }),
    delete: endpoint('DELETE /application-passwords/:id', MAY, async (request) => {
      const id = request.id('Application password');
      const user = requireAdminUser(request.ctx);
      const revoked = await getApplicationPasswords(request.app).revoke(user.id, id);
      if (!revoked) throw new errors.NotFoundError('Application password not found');
      return revoked;
    }),
  },
});

/** Forgets the application passwords of admin users that are deleted, in the same transaction. */
export const cleanUpDeletedUsers = (app: App): (() => void) => {
  const forget = async (event: WriteEvent): Promise<void> => {
    // On a copy: what the caller gave stays as it is.
    const users = await writtenRows(app.strapi, { ...event, params: { ...event.params } });
    await getApplicationPasswords(app).revokeAllOf(users.map(({ id }) => id));
  };
  return app.strapi.db.lifecycles.subscribe({
    models: ['admin::user'],
    beforeDelete: forget,
    beforeDeleteMany: forget,
  });
};
