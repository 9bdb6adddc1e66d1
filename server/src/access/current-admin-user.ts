import { errors } from '@strapi/utils';
import type { Context } from 'koa';

/** The name under which the host knows our strategy. */
export const BASIC_STRATEGY = 'switchboard-basic';

/** An admin user of the host, as far as this plugin needs one. */
export interface AdminUser {
  id: number;
  email: string;
  firstname?: string | null;
  lastname?: string | null;
  username?: string | null;
}

/** The host's strategies of the admin API: a session in the admin panel, and an admin token. */
export const ADMIN_SESSION_STRATEGY = 'admin';
const ADMIN_TOKEN_STRATEGY = 'admin-token';

interface AuthState {
  auth?: { strategy?: { name?: string }; credentials?: unknown };
  user?: unknown;
}

export const strategyOf = (ctx: Context): string | undefined =>
  (ctx.state as AuthState).auth?.strategy?.name;

/**
 * The admin user behind a request, on admin routes and on those of the content API under Basic
 * authentication. Null for API tokens and users-permissions: `ctx.state.user` may hold a user there
 * too, but one of another kind, whose id means somebody else.
 */
export const currentAdminUser = (ctx: Context): AdminUser | null => {
  const state = ctx.state as AuthState;
  switch (strategyOf(ctx)) {
    case BASIC_STRATEGY:
      return (state.auth?.credentials as AdminUser | undefined) ?? null;
    case ADMIN_SESSION_STRATEGY:
    case ADMIN_TOKEN_STRATEGY:
      return (state.user as AdminUser | undefined) ?? null;
    default:
      return null;
  }
};

/** @throws UnauthorizedError where there is no admin user behind the request. */
export const requireAdminUser = (ctx: Context): AdminUser => {
  const user = currentAdminUser(ctx);
  if (!user) throw new errors.UnauthorizedError();
  return user;
};

/** Who is behind a request, as lists show it; null where nobody of the admin is. */
export const nameOfAdminUser = (ctx: Context): string | null => {
  const user = currentAdminUser(ctx);
  if (!user) return null;
  const name = [user.firstname, user.lastname].filter(Boolean).join(' ').trim();
  return name || user.username || user.email;
};
