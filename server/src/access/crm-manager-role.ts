import { adminActionId } from '../../../shared/contracts/permissions';
import { errorText } from '../runtime/text';
import { hostPermissions, offeredActions } from './admin-actions';
import type { App } from '../app';

/** A host permission, reduced to what it allows. */
interface Grant {
  action: string;
  /** The content type it is about; none for the plugin's own actions. */
  subject?: string | null;
}

export const grantKey = ({ action, subject }: Grant): string =>
  subject ? `${action}|${subject}` : action;

/** Grants that the role was never offered. A missing grant that was `offered` before was removed on purpose. */
export const grantsToOffer = <G extends Grant>(
  wanted: readonly G[],
  offered: readonly string[]
): G[] => wanted.filter((grant) => !offered.includes(grantKey(grant)));

const CRM_MANAGER_CODE = 'switchboard-crm-manager';

const NAME = 'CRM Manager';
const DESCRIPTION = 'Manages the CRM: records, modules, webhooks, tills and stock.';

interface RoleService {
  findOne(where: Record<string, unknown>): Promise<{ id: number } | null>;
  exists(where: Record<string, unknown>): Promise<boolean>;
  create(role: { name: string; code: string; description: string }): Promise<{ id: number }>;
  addPermissions(roleId: number, permissions: readonly Grant[]): Promise<unknown>;
  hooks: {
    willResetSuperAdminPermissions: Record<'register' | 'delete', (handler: Handler) => unknown>;
  };
}

type Handler = (permissions: unknown) => Promise<unknown>;

interface HostAction {
  section: string;
  subjects?: string[];
}

const roles = (app: App): RoleService =>
  app.strapi.service('admin::role') as unknown as RoleService;

/** The actions that the site offers, and all that the content manager has on the plugin's content types. */
const wantedGrants = (app: App): Grant[] => {
  const { actionProvider } = hostPermissions<HostAction>(app);
  const contentTypes = app.strapi.service('admin::content-type') as unknown as {
    getPermissionsWithNestedFields(actions: HostAction[], options: object): Grant[];
  };
  const actions = actionProvider.values().filter(({ section }) => section === 'contentTypes');
  const isForeign = (uid: string): boolean => !uid.startsWith('plugin::switchboard.');
  const restrictedSubjects = actions.flatMap(({ subjects }) => subjects ?? []).filter(isForeign);
  return [
    ...offeredActions(app).map((action) => ({ action: adminActionId(action) })),
    ...contentTypes.getPermissionsWithNestedFields(actions, { restrictedSubjects }),
  ];
};

const memory = (app: App) =>
  app.strapi.store({ type: 'plugin', name: 'switchboard', key: 'crm-manager-role' });

/** Creates the CRM Manager role once and adds new grants. Roles and permissions that an admin removed stay removed. */
const offerCrmManager = (app: App): Promise<void> =>
  app.db.transaction(async () => {
    const store = memory(app);
    const remembered = (await store.get({})) as { offered: string[] } | null;
    const wanted = wantedGrants(app);
    let role = await roles(app).findOne({ code: CRM_MANAGER_CODE });
    let grants = grantsToOffer(wanted, remembered?.offered ?? []);
    if (!role && remembered) return;
    if (!role) {
      // The site may have a role of that name, which is not ours to change.
      const isTaken = await roles(app).exists({ name: NAME });
      const name = isTaken ? `${NAME} (Switchboard)` : NAME;
      role = await roles(app).create({ name, code: CRM_MANAGER_CODE, description: DESCRIPTION });
    } else if (!remembered) {
      // The memory was lost, the role was not: what it lacks may have been taken away on purpose.
      grants = [];
    }
    if (remembered && grants.length === 0) return;
    await roles(app).addPermissions(role.id, grants);
    const offered = [...new Set([...(remembered?.offered ?? []), ...wanted.map(grantKey)])];
    await store.set({ value: { offered } });
  });

/** Does work once, when the host renews the super admin's permissions: all roles exist. @returns a cancel function */
export const whenRolesAreThere = (app: App, work: () => Promise<void>): (() => void) => {
  const hook = roles(app).hooks.willResetSuperAdminPermissions;
  let done = false;
  const handler: Handler = async (permissions) => {
    const isFirst = !done;
    done = true;
    if (isFirst) await work();
    return permissions;
  };
  hook.register(handler);
  return () => void hook.delete(handler);
};

/**
 * Creates the role after the host has booted; returns a function that cancels this. In bootstrap it is too early: the
 * host creates its own roles later, and only if no role exists. Calling `createRolesIfNoneExist()` earlier would create
 * Editor without the content types of later plugins, and Author without its condition "only what they created".
 */
export const arrangeCrmManager = (app: App): (() => void) =>
  whenRolesAreThere(app, () =>
    offerCrmManager(app).catch(async (error: unknown) => {
      // Two nodes that boot a new site at once both create the role, and one of them may.
      if (await roles(app).exists({ code: CRM_MANAGER_CODE })) return;
      app.log.error(`switchboard: the CRM Manager role could not be created: ${errorText(error)}`);
    })
  );
