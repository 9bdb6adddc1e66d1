import { createHash, timingSafeEqual } from 'node:crypto';
import { errors } from '@strapi/utils';
import type { Context } from 'koa';
import { adminActionId } from '../../../shared/contracts/permissions';
import { clientAddress } from '../net/client-address';
import { type Ability, hostPermissions } from './admin-actions';
import { getApplicationPasswords } from './application-passwords';
import { type AdminUser, BASIC_STRATEGY, hostAuthentication } from './current-admin-user';
import type { FailedAttempts } from './failed-attempts';
import { adminActionFor } from './rules/content-api-actions';
import type { App } from '../app';

const SCHEME = /^basic(?:\s|$)/i;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** Longer than any e-mail address and password of ours; nothing beyond is decoded or hashed. */
const MAX_LENGTH = 2048;

export const isBasic = (header: string | undefined): boolean => SCHEME.test(header ?? '');

/** Reads a Basic header (RFC 7617, UTF-8); null if it is malformed. A password may contain colons. */
export const parseBasic = (header: string | undefined) => {
  if (!header || header.length > MAX_LENGTH || !isBasic(header)) return null;
  const encoded = header.slice('basic'.length).trim();
  if (!BASE64.test(encoded)) return null;
  const decoded = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = decoded.indexOf(':');
  if (colon < 1) return null;
  return { user: decoded.slice(0, colon), password: decoded.slice(colon + 1) };
};

interface StoredUser extends AdminUser {
  isActive?: boolean;
  blocked?: boolean;
  password?: string;
  resetPasswordToken?: string;
  registrationToken?: string;
}

interface Route {
  info?: { type?: string; pluginName?: string };
  config?: { auth?: false | { scope?: string[]; strategies?: unknown[] } };
}

/** True for a Basic header on a route of this plugin; a site may use Basic for purposes of its own. */
const concernsUs = (ctx: Context): boolean => {
  const { info, config } = (ctx.state.route as Route | undefined) ?? {};
  return (
    info?.pluginName === 'switchboard' &&
    info.type === 'content-api' &&
    config?.auth !== false &&
    isBasic(ctx.request.headers.authorization)
  );
};

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

const sameEmail = (one: string, other: string): boolean =>
  timingSafeEqual(digest(one.toLowerCase()), digest(other.toLowerCase()));

/** The user with this address and password. The password is looked up first: guessers learn no addresses. */
const authenticatedUser = async (app: App, header?: string): Promise<AdminUser | null> => {
  const credentials = parseBasic(header);
  if (!credentials) return null;
  const passwords = getApplicationPasswords(app);
  const password = await passwords.findByPassword(credentials.password);
  if (!password) return null;
  const stored: StoredUser | null = await app.strapi.db
    .query('admin::user')
    .findOne({ where: { id: password.userId }, populate: ['roles'] });
  if (!stored || stored.isActive !== true || stored.blocked === true) return null;
  if (!sameEmail(stored.email, credentials.user)) return null;
  await passwords.touch(password);
  const { password: _p, resetPasswordToken: _t, registrationToken: _r, ...user } = stored;
  return user;
};

/**
 * HTTP Basic with an admin user's e-mail address and application password; docs/contract-webhooks.md#permissions. Wrong
 * credentials get 401 and never fall back to public permissions. Too many from one address get 429.
 */
const createBasicStrategy = (app: App, failedAttempts: FailedAttempts) => ({
  name: BASIC_STRATEGY,

  async authenticate(ctx: Context) {
    if (!concernsUs(ctx)) return { authenticated: false };
    const user = await authenticatedUser(app, ctx.request.headers.authorization);
    if (user) {
      const ability = await hostPermissions(app).engine.generateUserAbility(user);
      return { authenticated: true, credentials: user, ability };
    }
    const retryAfter = await failedAttempts.charge(clientAddress(ctx));
    if (retryAfter !== null) {
      ctx.set('Retry-After', String(retryAfter));
      throw new errors.RateLimitError('Too many failed attempts, try again later');
    }
    ctx.set('WWW-Authenticate', 'Basic realm="Switchboard", charset="UTF-8"');
    return { error: new errors.UnauthorizedError('Wrong e-mail address or application password') };
  },

  async verify(auth: { ability: unknown }, config?: false | { scope?: string | string[] }) {
    const scope = config ? (config.scope ?? []) : [];
    const scopes = Array.isArray(scope) ? scope : [scope];
    const ability = auth.ability as Ability;
    const isAllowed = (contentApiAction: string): boolean => {
      const action = adminActionFor(contentApiAction);
      return action !== null && ability.can(adminActionId(action));
    };
    if (scopes.length === 0 || !scopes.every(isAllowed)) throw new errors.ForbiddenError();
  },
});

/**
 * Registers the strategy and makes it the only one for requests with a Basic header. The host takes the first strategy
 * that accepts, and users-permissions accepts every request without a Bearer token as public.
 */
export const addBasicAuthentication = (app: App, failedAttempts: FailedAttempts): void => {
  const host = hostAuthentication(app);
  host.register('content-api', createBasicStrategy(app, failedAttempts));
  const authenticate = host.authenticate.bind(host);
  host.authenticate = (ctx, next) => {
    if (concernsUs(ctx)) {
      const route = ctx.state.route as Route | undefined;
      const auth = { ...(route?.config?.auth || {}), strategies: [BASIC_STRATEGY] };
      ctx.state.route = { ...route, config: { ...route?.config, auth } };
    }
    return authenticate(ctx, next);
  };
};
