import { isDeepStrictEqual } from 'node:util';
import type { Context } from 'koa';
import { NAMED_BY } from './contact-integrity';
import { contentTypes, labelOf, mainFieldOf } from './content-types';
import { isComputed, KIND_DEFINITIONS } from './mapping/kinds';
import { KINDS } from './rules';
import type { App } from '../app';
import type { RouteConfig } from '../feature';

const CONTACT = KIND_DEFINITIONS.contact.uid;
const NAME = mainFieldOf(CONTACT);
/** The list of contacts, and the field that named them, before they had a display name. */
const OLD_MAIN_FIELD = 'email';
const OLD_LIST = ['email', 'first_name', 'last_name', 'contact_status', 'company', 'tags'];

type Shown = Record<string, unknown>;

interface Screen {
  settings: Shown;
  metadatas: Record<string, { edit: Shown; list: Shown } | undefined>;
  layouts: { list: string[]; edit: { name: string }[][] };
}

interface Screens {
  findConfiguration(type: { uid: string }): Promise<Screen>;
  updateConfiguration(type: { uid: string }, screen: Screen): Promise<unknown>;
}

/** Titles contacts by their name unless a site titled them otherwise, locks computed fields, and renews labels. */
const renewScreen = ({ settings, metadatas, layouts }: Screen, kind: keyof typeof contentTypes) => {
  const { attributes, config } = contentTypes[kind].schema;
  for (const [name, { edit }] of Object.entries(config.metadatas)) {
    const stored = metadatas[name];
    if (!stored) continue;
    for (const part of [stored.edit, stored.list])
      if (part.label === labelOf(name)) part.label = edit.label;
    if (!edit.editable) stored.edit.editable = false;
    if (attributes[name]?.target === CONTACT && stored.edit.mainField === OLD_MAIN_FIELD)
      stored.edit.mainField = NAME;
  }
  if (kind !== 'contact') return;
  if (settings.mainField === OLD_MAIN_FIELD && settings.defaultSortBy === OLD_MAIN_FIELD) {
    Object.assign(settings, { mainField: NAME, defaultSortBy: NAME });
    if (isDeepStrictEqual(layouts.list, OLD_LIST)) layouts.list = config.layouts.list;
  }
  // The host appends new fields to the form.
  const kept = layouts.edit.map((row) => row.filter(({ name }) => name !== NAME));
  layouts.edit = kept.filter((row) => row.length > 0);
};

/** Roles that may read everything a name is made of may read the name. The host gives new fields to nobody. */
const letRead = async ({ strapi }: App): Promise<void> => {
  const permissions = strapi.db.query('admin::permission');
  const where = { action: 'plugin::content-manager.explorer.read', subject: CONTACT };
  for (const { id, properties } of await permissions.findMany({ where })) {
    const fields = (properties as { fields?: string[] } | null)?.fields;
    if (!fields || fields.includes(NAME) || !NAMED_BY.every((name) => fields.includes(name)))
      continue;
    const data = { properties: { ...properties, fields: [...fields, NAME] } };
    await permissions.update({ where: { id }, data });
  }
};

/** Renews stored Content Manager views of an earlier version, once: a site may arrange them otherwise afterwards. */
export const renewScreens = async (app: App): Promise<void> => {
  const memory = app.strapi.store({ type: 'plugin', name: 'switchboard', key: 'crm-screens' });
  if (await memory.get({})) return;
  const screens = app.strapi.plugin('content-manager')?.service('content-types') as
    Screens | undefined;
  for (const kind of screens ? KINDS : []) {
    const { uid } = KIND_DEFINITIONS[kind];
    const screen = await screens!.findConfiguration({ uid });
    renewScreen(screen, kind);
    await screens!.updateConfiguration({ uid }, screen);
  }
  await letRead(app);
  await memory.set({ value: { names: true } });
};

/**
 * Leaves computed fields out of what the Content Manager saves: its form sends all fields again, as it showed them,
 * and would undo a purchase that was added meanwhile. Call it in `register`, before the host reads its routes.
 */
export const leaveComputedOut = ({ strapi }: App): void => {
  const leaveOut = (ctx: Context, next: () => Promise<unknown>): Promise<unknown> => {
    const { body } = ctx.request as { body?: Record<string, unknown> };
    const kind = Object.values(KIND_DEFINITIONS).find(({ uid }) => uid === ctx.params.model);
    for (const field of kind?.fields.filter(isComputed) ?? []) delete body?.[field.attribute];
    return next();
  };
  const { admin } = (strapi.plugin('content-manager')?.routes ?? {}) as {
    admin?: { routes: RouteConfig[] };
  };
  for (const route of admin?.routes ?? []) {
    if (!['POST', 'PUT'].includes(route.method)) continue;
    if (!/^\/collection-types\/:model(\/:id|\/clone\/:sourceId)?$/.test(route.path)) continue;
    const known = (route.config?.middlewares ?? []) as unknown[];
    route.config = { ...route.config, middlewares: [leaveOut, ...known] };
  }
};
