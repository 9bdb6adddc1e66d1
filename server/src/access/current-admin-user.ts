import type { Core } from '@strapi/strapi';
import { errors } from '@strapi/utils';
import type { Context } from 'koa';
import { type AdminAction, adminActionId } from '../../../shared/contracts/permissions';
import { type Ability, hostPermissions } from './admin-actions';
import type { App } from '../app';

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

interface State {
  auth?: { strategy?: { name?: string }; credentials?: unknown };
  user?: unknown;
  userAbility?: Ability;
  route?: { info?: { type?: string } };
}

export const strategyOf = (ctx: Context): string | undefined =>
  (ctx.state as State).auth?.strategy?.name;

/** The admin user of a panel or Basic request; null for API tokens and users-permissions: their users are no admins. */
export const currentAdminUser = (ctx: Context): AdminUser | null => {
  const state = ctx.state as State;
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

/** @throws UnauthorizedError if there is no admin user behind the request. */
export const requireAdminUser = (ctx: Context): AdminUser => {
  const user = currentAdminUser(ctx);
  if (!user) throw new errors.UnauthorizedError();
  return user;
};

/** The admin user of a request, as lists show it; null if it has none. */
export const nameOfAdminUser = (ctx: Context): string | null => {
  const user = currentAdminUser(ctx);
  if (!user) return null;
  const name = [user.firstname, user.lastname].filter(Boolean).join(' ').trim();
  return name || user.username || user.email;
};

/** Parts of answers that need an action in addition to the route's own; of `content`, each is enough. */
const SHOWN = {
  secrets: { content: ['webhooks.revealSecret'], admin: 'webhooks.reveal' },
  deliveries: { content: ['deliveries.find', 'deliveries.findOne'], admin: 'webhooks.read' },
  journal: { content: ['journal.find'], admin: 'journal.read' },
  posEvents: { content: [], admin: 'pos-events.read' },
} as const satisfies Record<string, { content: readonly string[]; admin: AdminAction }>;

export const hostAuthentication = ({ strapi }: App): Core.Strapi['auth'] => strapi.get('auth');

/** True if the user of the panel has a permission. */
export const isAllowed = (ctx: Context, action: AdminAction): boolean =>
  (ctx.state as State).userAbility?.can(adminActionId(action)) ?? false;

type Judged = 'read' | 'update' | 'delete';

/** The content manager's permissions of a user for one content type, with conditions and fields. */
export interface ContentPermissions {
  cannot: Record<Judged, (entity?: object, field?: string) => boolean>;
  /** A query without filters of fields that the user may not read, as the content manager's lists take it. */
  sanitizedQuery: { read(query: object): Promise<Record<string, unknown>> };
  /** An entry without the fields that the user may not read. */
  sanitizeOutput<Entry>(entry: Entry): Promise<Entry>;
}

/** @throws ForbiddenError (403) on a site without the content manager */
export const contentPermissions = ({ strapi }: App, ctx: Context, uid: string) => {
  const service = strapi.plugins['content-manager']?.service('permission-checker') as unknown as
    { create(of: object): ContentPermissions } | undefined;
  if (!service) throw new errors.ForbiddenError();
  return service.create({ userAbility: (ctx.state as State).userAbility, model: uid });
};

/** Relations that conditions of a user's permissions look at: load them with an entry before it is judged. */
export const judgedRelations = (app: App, ctx: Context, uid: string, judged: Judged[]) => {
  const builder = app.strapi.plugin('content-manager').service('populate-builder') as (
    of: string
  ) => {
    populateFromQuery(query: object): { build(): Promise<object> };
  };
  // A rule without a condition answers for all: the host would not look at the others.
  const rulesFor = (action: string, type: string) =>
    ((ctx.state as State).userAbility?.rulesFor(action, type) ?? []).filter(
      ({ conditions = {} }) => Object.keys(conditions).length > 0
    );
  const manager = hostPermissions(app).createPermissionsManager({
    ability: { rulesFor },
    model: uid,
  });
  const filters = judged.map((action) => {
    const id = `plugin::content-manager.explorer.${action}`;
    return manager.addPermissionsQueryTo({}, id).filters ?? {};
  });
  return builder(uid).populateFromQuery({ $or: filters }).build();
};

/** True if the caller may see a part of an answer; in the content API, as the host judges it for a route. */
export const maySee = async (app: App, ctx: Context, what: keyof typeof SHOWN) => {
  const { content, admin } = SHOWN[what];
  const { auth, route } = ctx.state as State;
  if (route?.info?.type === 'admin') return isAllowed(ctx, admin);
  for (const action of content) {
    try {
      await hostAuthentication(app).verify(auth as never, {
        scope: [`plugin::switchboard.${action}`],
      });
      return true;
    } catch {
      // Any error is a refusal: a user whose permissions are unknown sees nothing.
    }
  }
  return false;
};
