import { featureOfAction } from '../../../shared/contracts/features';
import { ADMIN_ACTIONS } from '../../../shared/contracts/permissions';
import type { PlainTable } from '../database/tables/plain-tables';
import type { Feature } from '../feature';
import type { App, Slot } from '../app';
import type { Db } from '../database/db';

const NAME_OF_OURS = /plugin::switchboard\.([a-z-]+)/;

const absent = (): Slot<ReadonlySet<string>> => ({});

/** Notes what the host does not know of in this process because the site does without it. */
export const noteAbsent = (app: App, features: readonly Feature[]): void => {
  const on = app.options.features;
  const types = features
    .filter(({ option }) => option !== undefined && !on[option])
    .flatMap(({ contentTypes, controllers }) => [
      ...Object.keys(contentTypes ?? {}),
      ...Object.keys(controllers ?? {}),
    ]);
  const actions = ADMIN_ACTIONS.filter((action) => {
    const feature = featureOfAction(action);
    return feature !== undefined && !on[feature];
  }).map((action) => action.slice(0, action.indexOf('.')));
  app.part(absent).value = new Set([...types, ...actions]);
};

const isOfAbsent = (app: App, text: unknown): boolean => {
  const [, name] = (typeof text === 'string' && NAME_OF_OURS.exec(text)) || [];
  return name !== undefined && (app.part(absent).value?.has(name) ?? false);
};

/** Whether a row of the host is about a content type or an action that the site does without now. */
const isRowOfAbsent = (app: App, row: Record<string, unknown>): boolean =>
  ['action', 'subject', 'key'].some((name) => isOfAbsent(app, row[name]));

const TABLE = 'switchboard_host_settings';
const OURS = 'plugin::switchboard.';
const SCHEMA_KEY = 'strapi_content_types_schema';
const SCREENS_KEY = `plugin_content_manager_configuration_content_types::${OURS}`;

/** One row for each of `KEPT`: what the host had when it was last changed. */
export const hostSettingsTable: PlainTable = {
  tableName: TABLE,
  attributes: {
    id: { type: 'increments' },
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

/**
 * What the host keeps about the plugin's actions and content types, and removes at a boot that does
 * not know them: permissions of admin roles and of admin users' tokens, those of API tokens and of
 * the roles of users-permissions, and how the content manager shows the types.
 */
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

const kinds = (app: App): [uid: string, kept: Kept][] =>
  Object.entries(KEPT).filter(([uid]) => app.strapi.db.metadata.has(uid));

/** The host fills owners in side by side, so the order of their keys is a matter of chance. */
const inOrder = (row: Row, owners: readonly string[]): Row => {
  const rest = Object.entries(row).filter(([name]) => !owners.includes(name));
  return Object.fromEntries([...rest, ...owners.map((name) => [name, row[name]])]) as Row;
};

/** Of owners the id alone: a token's row has a hash of its key. Equal rows are equal as text. */
const read = async (app: App, uid: string, { where, owners }: Kept): Promise<Row[]> => {
  const rows = (await app.strapi.db.query(uid).findMany({
    where,
    populate: Object.fromEntries(owners.map((name) => [name, { select: ['id'] }])),
    orderBy: { id: 'asc' },
  })) as Row[];
  return rows.map((row) => inOrder(row, owners));
};

/** Whether the process that booted last knew the plugin: if not, what is gone was not taken away. */
const wasThereAtLastBoot = async (app: App): Promise<boolean> => {
  const where = { key: SCHEMA_KEY, value: { $contains: `"${OURS}` } };
  return (await app.strapi.db.query('strapi::core-store').count({ where })) > 0;
};

/** Not asynchronous: a query builder that a promise resolves with is run. */
const settings = (db: Db) => db.table(TABLE);

/**
 * Writes down what the host has of a kind now, in the transaction that changed it. What is about a
 * part that the site does without now stays as it was written down: the host forgot it.
 */
const save = async (app: App, uid: string, kept: Kept): Promise<void> => {
  if (!(await wasThereAtLastBoot(app))) return;
  const db = await app.db.current();
  const [before] = (await settings(db).where({ name: uid }).select('rows', 'pending')) as {
    rows: string;
    pending: boolean | number | null;
  }[];
  const isAbsent = (row: Row): boolean => isRowOfAbsent(app, row);
  const remembered = (JSON.parse(before?.rows ?? '[]') as Row[]).filter(isAbsent);
  const present = (await read(app, uid, kept)).filter((row) => !isAbsent(row));
  const rows = JSON.stringify([...present, ...remembered]);
  if (before?.pending || before?.rows === rows) return;
  const row = { name: uid, rows, pending: false, updated_at: Date.now() };
  await settings(db).insert(row).onConflict('name').merge();
};

export const saveHostSettings = async (app: App): Promise<void> => {
  for (const [uid, kept] of kinds(app)) await save(app, uid, kept);
};

/** False only where the event surely is about rows of somebody else. */
const mayBeOurs = ({ result }: { result?: unknown }): boolean => {
  if (typeof result !== 'object' || result === null) return true;
  const values = ['action', 'subject', 'key'].map((name) => (result as Row)[name]);
  if (values.every((value) => value === undefined)) return true;
  return values.some((value) => typeof value === 'string' && value.includes(OURS));
};

/** Keeps what is written down true from now on. @returns what ends that. */
export const watchHostSettings = (app: App): (() => void) => {
  const follow = async (event: { model: { uid: string }; result?: unknown }): Promise<void> => {
    const kept = KEPT[event.model.uid];
    if (kept && mayBeOurs(event)) await save(app, event.model.uid, kept);
  };
  return app.strapi.db.lifecycles.subscribe({
    models: kinds(app).map(([uid]) => uid),
    afterCreate: follow,
    afterCreateMany: follow,
    afterUpdate: follow,
    afterUpdateMany: follow,
    afterDelete: follow,
    afterDeleteMany: follow,
  });
};

/** Notes, before the host forgets that it booted without the plugin, or a part of it, that it did. */
export const noteAbsence = async (app: App): Promise<void> => {
  // There is none on a site that has the plugin for the first time.
  if (!(await app.strapi.db.getSchemaConnection().hasTable(TABLE))) return;
  await settings(app.db.pool).update({ pending: true });
};

const ownerIds = (row: Row, { owners }: Kept): Record<string, number | null> =>
  Object.fromEntries(owners.map((name) => [name, (row[name] as Row | null)?.id ?? null]));

const restoreRow = async (app: App, uid: string, kept: Kept, row: Row): Promise<boolean> => {
  const owned = ownerIds(row, kept);
  const attributes = app.strapi.db.metadata.get(uid).attributes as Record<
    string,
    { target?: string }
  >;
  for (const [name, id] of Object.entries(owned)) {
    if (id === null) continue;
    // Deleted while the plugin was away, and its rows with it.
    if ((await app.strapi.db.query(attributes[name]!.target!).count({ where: { id } })) === 0)
      return false;
  }
  const identity = Object.fromEntries(kept.identity.map((name) => [name, row[name] ?? null]));
  const query = app.strapi.db.query(uid);
  if ((await query.count({ where: { ...identity, ...owned } })) > 0) return false;
  const { id, ...data } = row;
  const isFree = (await query.count({ where: { id } })) === 0;
  await query.create({ data: { ...data, ...owned, ...(isFree && { id }) } });
  return true;
};

const restoreKind = async (app: App, uid: string, kept: Kept): Promise<number> =>
  app.db.transaction(async (tx) => {
    // Locks the row: of two nodes that boot at once, one restores.
    const taken = await settings(tx).where({ name: uid, pending: true }).update({ pending: false });
    if (taken === 0) return 0;
    const [found] = (await settings(tx).where({ name: uid }).select('rows')) as {
      rows: string;
    }[];
    let restored = 0;
    for (const row of JSON.parse(found?.rows ?? '[]') as Row[]) {
      // The host would only forget it again in this boot.
      if (isRowOfAbsent(app, row)) continue;
      if (await restoreRow(app, uid, kept, row)) restored += 1;
    }
    return restored;
  });

/**
 * Puts back what the host removed while the plugin was away, with the ids it had, for roles and
 * tokens that still are there. What was granted or taken away before comes back as it was.
 */
export const restoreHostSettings = async (app: App): Promise<void> => {
  let restored = 0;
  for (const [uid, kept] of kinds(app)) restored += await restoreKind(app, uid, kept);
  if (restored > 0)
    app.log.info(
      `switchboard: the plugin, or a part of it, was away for a boot: ${restored} permissions and screen settings that the host had removed are back.`
    );
};
