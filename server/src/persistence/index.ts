import { FEATURE_IDS } from '../../../shared/contracts/features';
import { hasCoreStore, persistTables } from '../database/tables/persisted-tables';
import { ensureTables, type PlainTable } from '../database/tables/plain-tables';
import type { Feature } from '../feature';
import {
  hostSettingsTable,
  noteAbsence,
  noteAbsent,
  restoreHostSettings,
  saveHostSettings,
  watchHostSettings,
} from './host-settings';
import type { App } from '../app';

const OURS = 'plugin::switchboard.';

/** Tables of the plugin's content types, and those that the host makes for their relations. */
const contentTypeTables = (app: App): string[] => {
  const models = [...app.strapi.db.metadata.values()];
  const own = new Set(
    models.filter(({ uid }) => uid.startsWith(OURS)).map(({ tableName }) => tableName)
  );
  // The first foreign key of a join table is the owner's of the relation.
  const joins = models.filter(({ foreignKeys }) =>
    own.has(foreignKeys?.[0]?.referencedTable ?? '')
  );
  return [...own, ...joins.map(({ tableName }) => tableName)];
};

interface SyncEvent {
  oldContentTypes?: Record<string, unknown> | null;
}

const wasAway = ({ oldContentTypes }: SyncEvent): boolean =>
  Boolean(oldContentTypes) &&
  !Object.keys(oldContentTypes as Record<string, unknown>).some((uid) => uid.startsWith(OURS));

/** Whether a part that is there now has no content type on record of the last boot. */
const cameBack = (
  { oldContentTypes }: SyncEvent,
  app: App,
  features: readonly Feature[]
): boolean =>
  FEATURE_IDS.filter((id) => app.options.features[id]).some((id) =>
    features
      .filter(({ option }) => option === id)
      .flatMap(({ contentTypes }) => Object.keys(contentTypes ?? {}))
      .every((name) => !(`${OURS}${name}` in (oldContentTypes ?? {})))
  );

/**
 * Sees to it, at every boot, that what the plugin keeps outlives a boot without it.
 *
 * Before the host synchronises its schema: tables that it tracked for an earlier version and that
 * are not its any more would be dropped in this very boot. And after it, because on a new site there
 * is no core store before.
 * @param tables the plain tables of what the site has
 * @param features all of the plugin, those too that the site does without
 */
export const keepTables = (
  app: App,
  tables: readonly PlainTable[],
  features: readonly Feature[]
): void => {
  noteAbsent(app, features);
  const names = () => [
    ...new Set([...tables.map(({ tableName }) => tableName), ...contentTypeTables(app)]),
  ];
  app.strapi.hook('strapi::content-types.beforeSync').register(async (event: SyncEvent) => {
    await app.site.load();
    if (!(await hasCoreStore(app.strapi))) return;
    await persistTables(app.strapi, names());
    if (wasAway(event) || cameBack(event, app, features)) await noteAbsence(app);
  });
  app.strapi.hook('strapi::content-types.afterSync').register(async () => {
    await ensureTables(app.strapi, tables);
    await persistTables(app.strapi, names());
    await restoreHostSettings(app);
  });
};

interface RoleHooks {
  hooks: {
    willResetSuperAdminPermissions: {
      register(handler: (permissions: unknown) => Promise<unknown>): unknown;
    };
  };
}

const undo: (() => void)[] = [];

/** What the host forgets of a plugin that is away for a boot: remembered here, and put back. */
export const persistence: Feature = {
  tables: [hostSettingsTable],
  bootstrap(app) {
    const roles = app.strapi.service('admin::role') as unknown as RoleHooks;
    let done = false;
    // The host's next step after every plugin's bootstrap; before it, the content manager is still
    // bringing its settings up to date.
    roles.hooks.willResetSuperAdminPermissions.register(async (permissions) => {
      if (!done) {
        done = true;
        await saveHostSettings(app);
        undo.push(watchHostSettings(app));
      }
      return permissions;
    });
  },
  destroy() {
    for (const step of undo.splice(0)) step();
  },
};
