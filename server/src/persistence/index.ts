import { featureOfAction, FEATURE_IDS } from '../../../shared/contracts/features';
import { ADMIN_ACTIONS } from '../../../shared/contracts/permissions';
import { whenRolesAreThere } from '../access/crm-manager-role';
import type { App } from '../app';
import type { Db } from '../database/db';
import { siteTable } from '../database/site';
import { ensureTables, type PlainTable } from '../database/tables/plain-tables';
import type { Feature } from '../feature';
import { isOn } from '../parts';
import { hasCoreStore, keepColumns, persistTables } from './tables';

const TABLE = 'switchboard_host_settings';
const OURS = 'plugin::switchboard.';
const NAME_OF_OURS = /plugin::switchboard\.([a-z-]+)/;
const SCHEMA_KEY = 'strapi_content_types_schema';
const SCREENS_KEY = `plugin_content_manager_configuration_content_types::${OURS}`;

/** One row for each of `KEPT`: what the host had when it was last changed. */
const hostSettingsTable: PlainTable = {
  tableName: TABLE,
  attributes: {
    name: { type: 'string' },
    rows: { type: 'text' },
    /** The host booted without the plugin since; what it forgot has to be put back. */
    pending: { type: 'boolean' },
    updated_at: { type: 'biginteger' },
  },
  indexes: [{ name: 'sb_host_settings_name', columns: ['name'], type: 'unique' }],
};

type Row = Record<string, unknown> & { id: number };

interface Kept {
  where: Record<string, unknown>;
  /** Relations that a row makes no sense without. */
  owners: readonly string[];
  /** Which attributes tell that a row is there already. */
  identity: readonly string[];
}

const startsWithOurs = { $startsWith: OURS };
/** Settings that the host removes at a boot without the plugin: permissions and content manager views. */
const KEPT: Readonly<Record<string, Kept>> = {
  'admin::permission': {
    where: { $or: [{ action: startsWithOurs }, { subject: startsWithOurs }] },
    owners: ['role', 'apiToken'],
    identity: ['action', 'subject'],
  },
  'admin::api-token-permission': {
    where: { action: startsWithOurs },
    owners: ['token'],
    identity: ['action'],
  },
  'plugin::users-permissions.permission': {
    where: { action: startsWithOurs },
    owners: ['role'],
    identity: ['action'],
  },
  'strapi::core-store': {
    where: { key: { $startsWith: SCREENS_KEY } },
    owners: [],
    identity: ['key', 'environment', 'tag'],
  },
};

/** The host fills owners in side by side, so the order of their keys is a matter of chance. */
const inOrder = (row: Row, owners: readonly string[]): Row => {
  const rest = Object.entries(row).filter(([name]) => !owners.includes(name));
  return Object.fromEntries([...rest, ...owners.map((name) => [name, row[name]])]) as Row;
};

/** False only if the event certainly concerns rows of others. */
const mayBeOurs = ({ result }: { result?: unknown }): boolean => {
  const { action, subject, key } = (result ?? {}) as Row;
  const values = [action, subject, key].filter((value) => value !== undefined);
  return values.length === 0 || values.some((value) => String(value).includes(OURS));
};

/** Not asynchronous: a query builder that a promise resolves with is run. */
const settings = (db: Db) => db.table(TABLE);

/** The host's `KEPT` settings: stored at each change, restored after a boot without the plugin. */
class HostSettings {
  /** @param absent content types and actions that the site lacks now: the host does not know them */
  constructor(
    private readonly app: App,
    private readonly absent: ReadonlySet<string>
  ) {}

  /** Writes down what there is, and keeps that true from now on. @returns what ends that. */
  async watch(): Promise<() => void> {
    for (const [uid, kept] of this.kinds()) await this.save(uid, kept);
    const follow = async (event: { model: { uid: string }; result?: unknown }): Promise<void> => {
      const kept = KEPT[event.model.uid];
      if (kept && mayBeOurs(event)) await this.save(event.model.uid, kept);
    };
    return this.app.strapi.db.lifecycles.subscribe({
      models: this.kinds().map(([uid]) => uid),
      ...{ afterCreate: follow, afterUpdate: follow, afterDelete: follow },
      ...{ afterCreateMany: follow, afterUpdateMany: follow, afterDeleteMany: follow },
    });
  }

  /** Notes, before the host forgets that it booted without the plugin, or a part of it, that it did. */
  async noteAbsence(): Promise<void> {
    // There is none on a site that has the plugin for the first time.
    if (!(await this.app.strapi.db.getSchemaConnection().hasTable(TABLE))) return;
    await settings(this.app.db.pool).update({ pending: true });
  }

  /** Restores what the host removed while the plugin was absent, with the same ids, for the roles and tokens left. */
  async restore(): Promise<void> {
    let restored = 0;
    for (const [uid, kept] of this.kinds()) restored += await this.restoreKind(uid, kept);
    if (restored === 0) return;
    this.app.log.info(
      `switchboard: the plugin, or a part of it, was away for a boot: ${restored} permissions and screen settings that the host had removed are back.`
    );
  }

  private kinds(): [uid: string, kept: Kept][] {
    return Object.entries(KEPT).filter(([uid]) => this.app.strapi.db.metadata.has(uid));
  }

  /** True if a row of the host is about a content type or an action that the site now lacks. */
  private isAbsent(row: Row): boolean {
    return [row.action, row.subject, row.key].some((text) => {
      const [, name] = NAME_OF_OURS.exec(String(text)) ?? [];
      return name !== undefined && this.absent.has(name);
    });
  }

  /** Owners are kept by id only: a token's row has a hash of its key. Equal rows are equal as text. */
  private async read(uid: string, { where, owners }: Kept): Promise<Row[]> {
    const rows = (await this.app.strapi.db.query(uid).findMany({
      where,
      populate: Object.fromEntries(owners.map((name) => [name, { select: ['id'] }])),
      orderBy: { id: 'asc' },
    })) as Row[];
    return rows.map((row) => inOrder(row, owners));
  }

  /** Saves settings in the transaction that changed them. Rows of absent features stay: the host has deleted them. */
  private async save(uid: string, kept: Kept): Promise<void> {
    // If the process that booted last did not know the plugin, what is gone was not taken away.
    const where = { key: SCHEMA_KEY, value: { $contains: `"${OURS}` } };
    if ((await this.app.strapi.db.query('strapi::core-store').count({ where })) === 0) return;
    const db = await this.app.db.current();
    const before = (await settings(db).where({ name: uid }).first('rows', 'pending')) as
      { rows: string; pending: boolean | number | null } | undefined;
    const remembered = (JSON.parse(before?.rows ?? '[]') as Row[]).filter((row) =>
      this.isAbsent(row)
    );
    const present = (await this.read(uid, kept)).filter((row) => !this.isAbsent(row));
    const rows = JSON.stringify([...present, ...remembered]);
    if (before?.pending || before?.rows === rows) return;
    const row = { name: uid, rows, pending: false, updated_at: Date.now() };
    await settings(db).insert(row).onConflict('name').merge();
  }

  private restoreKind(uid: string, kept: Kept): Promise<number> {
    return this.app.db.transaction(async (tx) => {
      // Locks the row: of two nodes that boot at once, one restores.
      const pending = settings(tx).where({ name: uid, pending: true });
      if ((await pending.update({ pending: false })) === 0) return 0;
      const { rows } = (await settings(tx).where({ name: uid }).first('rows')) as { rows: string };
      let restored = 0;
      for (const row of JSON.parse(rows) as Row[]) {
        // The host would only forget it again in this boot.
        if (!this.isAbsent(row) && (await this.restoreRow(uid, kept, row))) restored += 1;
      }
      return restored;
    });
  }

  private async restoreRow(uid: string, kept: Kept, { id, ...data }: Row): Promise<boolean> {
    const { db } = this.app.strapi;
    const attributes = db.metadata.get(uid).attributes as Record<string, { target?: string }>;
    const owned: Record<string, number | null> = {};
    for (const name of kept.owners) {
      const owner = (data[name] as Row | null)?.id ?? null;
      owned[name] = owner;
      if (owner === null) continue;
      const owners = db.query(attributes[name]!.target!);
      // Deleted while the plugin was away, and its rows with it.
      if ((await owners.count({ where: { id: owner } })) === 0) return false;
    }
    const identity = Object.fromEntries(kept.identity.map((name) => [name, data[name] ?? null]));
    const query = db.query(uid);
    if ((await query.count({ where: { ...identity, ...owned } })) > 0) return false;
    const isFree = (await query.count({ where: { id } })) === 0;
    await query.create({ data: { ...data, ...owned, ...(isFree && { id }) } });
    return true;
  }
}

/** Content types and actions that the site lacks, without their prefix. */
const absentOf = ({ options }: App, features: readonly Feature[]): ReadonlySet<string> => {
  const types = features
    .filter((feature) => !isOn(feature, options.features))
    .flatMap(({ contentTypes, controllers }) => Object.keys({ ...contentTypes, ...controllers }));
  const actions = ADMIN_ACTIONS.filter(
    (action) => !isOn({ option: featureOfAction(action) }, options.features)
  ).map((action) => action.slice(0, action.indexOf('.')));
  return new Set([...types, ...actions]);
};

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

/** The content types of the last boot by their uids; null on a new site. */
type SyncEvent = { oldContentTypes?: Record<string, unknown> | null };

/** True if the plugin, or a part that is there now, has no content type on record of the last boot. */
const wasAway = ({ oldContentTypes }: SyncEvent, app: App, features: readonly Feature[]) => {
  const known = Object.keys(oldContentTypes ?? {}).filter((uid) => uid.startsWith(OURS));
  if (oldContentTypes && known.length === 0) return true;
  return FEATURE_IDS.filter((id) => app.options.features[id]).some((id) =>
    features
      .filter(({ option }) => option === id)
      .flatMap(({ contentTypes }) => Object.keys(contentTypes ?? {}))
      .every((name) => !known.includes(`${OURS}${name}`))
  );
};

/** Preserves the plugin's tables, columns and host settings over a boot without it, also those of absent `features`. */
export const persistenceOf = (features: readonly Feature[]): Feature => {
  const hostSettings = (app: App) => new HostSettings(app, absentOf(app, features));
  let endWatch = (): void => {};
  return {
    tables: [hostSettingsTable],
    register(app) {
      const { strapi, db } = app;
      const present = features.filter((feature) => isOn(feature, app.options.features));
      const tables = [siteTable, hostSettingsTable, ...present.flatMap((one) => one.tables ?? [])];
      const persist = (): Promise<void> =>
        persistTables(db.pool, [...tables.map((one) => one.tableName), ...contentTypeTables(app)]);
      // Tables that the host tracked for an earlier version and that are not its any more would be
      // dropped in this very boot.
      strapi.hook('strapi::content-types.beforeSync').register(async (event: SyncEvent) => {
        keepColumns(strapi);
        await app.site.load();
        if (!(await hasCoreStore(strapi))) return;
        await persist();
        if (wasAway(event, app, features)) await app.part(hostSettings).noteAbsence();
      });
      // On a new site there is no core store before.
      strapi.hook('strapi::content-types.afterSync').register(async () => {
        await ensureTables(strapi, tables);
        await persist();
        await app.part(hostSettings).restore();
      });
    },
    bootstrap(app) {
      // Before that, the content manager is still bringing its settings up to date.
      whenRolesAreThere(app, async () => {
        endWatch = await app.part(hostSettings).watch();
      });
    },
    destroy() {
      endWatch();
    },
  };
};
