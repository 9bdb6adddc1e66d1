import { contentTypes } from '@strapi/utils';
import { isLocalized, type Where } from '../database/written-rows';
import {
  type ContentTypeUid,
  ENTRY_EVENTS,
  type FieldShape,
  FILE,
  MEDIA_EVENTS,
  type Shape,
} from './rules';
import type { App } from '../app';

export interface AttributeShape {
  type: string;
  relation?: string;
  target?: string;
  mappedBy?: string;
  unstable_virtual?: boolean;
  multiple?: boolean;
  component?: string;
  repeatable?: boolean;
  components?: readonly string[];
  enum?: readonly string[];
}

/** The parts of a content type or a component that matter here. */
export interface ModelShape {
  uid?: string;
  attributes: Record<string, AttributeShape>;
  options?: { draftAndPublish?: boolean };
}

interface Models {
  model(uid: string): ModelShape | undefined;
  /** Private by its own word, by its type's options or by the site's. */
  isPrivate(model: ModelShape, name: string): boolean;
}

/** The author of an entry is private; other languages are documents' versions of their own. */
const LEFT_OUT = new Set(['createdBy', 'updatedBy', 'localizations']);

const hasDrafts = (model: ModelShape | undefined): boolean =>
  model?.options?.draftAndPublish === true;

/** Describes the public part of content types and components, each of them once. */
export const createDescriber = ({ model, isPrivate }: Models) => {
  const known = new Map<string, Shape>();

  const fieldOf = (attribute: AttributeShape): FieldShape | null => {
    const { type, relation = '' } = attribute;
    switch (type) {
      case 'password':
        return null;
      case 'relation':
        return {
          kind: 'relation',
          many: relation.endsWith('ToMany') || relation === 'morphMany',
          morph: relation.startsWith('morphTo'),
          ordered: attribute.mappedBy === undefined && !/^morph(One|Many)$/.test(relation),
          drafts: attribute.target !== undefined && hasDrafts(model(attribute.target)),
        };
      case 'media':
        return { kind: 'media', many: attribute.multiple === true, file: describe(FILE) };
      case 'component': {
        const shape = describe(String(attribute.component));
        return { kind: 'component', many: attribute.repeatable === true, shape };
      }
      case 'dynamiczone': {
        const shapes = (attribute.components ?? []).map((uid) => [uid, describe(uid)] as const);
        return { kind: 'zone', shapes: new Map(shapes) };
      }
      default:
        return { kind: 'scalar', type, ...(attribute.enum && { values: attribute.enum }) };
    }
  };

  const describe = (uid: string): Shape => {
    const found = known.get(uid);
    if (found) return found;
    const fields: [string, FieldShape][] = [];
    const shape: Shape = { fields };
    // Before its attributes are looked at: a component may contain itself.
    known.set(uid, shape);
    const described = model(uid);
    for (const [name, attribute] of Object.entries(described?.attributes ?? {})) {
      if (!described || LEFT_OUT.has(name) || attribute.unstable_virtual) continue;
      if (name === 'id' || name === 'documentId' || isPrivate(described, name)) continue;
      // A file contains its own data, not its usage.
      if (uid === FILE && attribute.type === 'relation') continue;
      const field = fieldOf(attribute);
      if (field) fields.push([name, field]);
    }
    return shape;
  };

  return describe;
};

/** Everything that the host's query engine has to load besides a row's own columns. */
export const populateOf = (shape: Shape, within: readonly Shape[] = []): Where => {
  const inside = [...within, shape];
  const populate: Where = {};
  for (const [name, field] of shape.fields) {
    if (field.kind === 'relation') {
      const select = ['id', 'documentId', ...(field.drafts ? ['publishedAt'] : [])];
      populate[name] = field.morph ? {} : { select };
    } else if (field.kind === 'media') {
      const scalars = field.file.fields.filter(([, { kind }]) => kind === 'scalar');
      populate[name] = { select: ['id', 'documentId', ...scalars.map(([scalar]) => scalar)] };
    } else if (field.kind === 'component') {
      if (inside.includes(field.shape)) continue;
      populate[name] = { populate: populateOf(field.shape, inside) };
    } else if (field.kind === 'zone') {
      const on = [...field.shapes]
        .filter(([, one]) => !inside.includes(one))
        .map(([uid, one]) => [uid, { populate: populateOf(one, inside) }] as const);
      populate[name] = { on: Object.fromEntries(on) };
    }
  }
  return populate;
};

/** A content type whose writes become events, as the site's options name it. */
export interface EntryType {
  readonly uid: ContentTypeUid;
  readonly shape: Shape;
  readonly populate: Where;
  readonly draftAndPublish: boolean;
  readonly localized: boolean;
  readonly drafts: boolean;
  readonly events: readonly string[];
}

export type EntryTypes = ReadonlyMap<string, EntryType>;

/** The options name something that the site does not have; stops the boot. */
class EntryTypeError extends Error {}

const OPTION = 'switchboard.sources.entries';

/** The host's own types, and those of the plugin, are no content; files have an option of their own. */
const isContent = (uid: string): boolean =>
  !/^(admin::|strapi::|plugin::switchboard\.)/.test(uid) && uid !== FILE;

const isSiteType = (uid: string): boolean => uid.startsWith('api::');

const modelOf = (app: App, uid: string): ModelShape | undefined =>
  ((app.strapi.contentTypes as Record<string, unknown>)[uid] ??
    (app.strapi.components as Record<string, unknown>)[uid]) as ModelShape | undefined;

/** The types that the options name, and whether with drafts. */
const named = (app: App): Map<string, boolean> => {
  const { entries } = app.options.sources;
  const known = Object.keys(app.strapi.contentTypes);
  if (entries === '*') return new Map(known.filter(isSiteType).map((uid) => [uid, false]));
  const types = new Map<string, boolean>();
  for (const entry of entries ?? []) {
    const { contentType, drafts } =
      typeof entry === 'string' ? { contentType: entry, drafts: false } : entry;
    types.set(contentType, drafts || types.get(contentType) === true);
  }
  return types;
};

/** Types that the options name and that cannot be published, each with a line for the log. */
const unknownTypes = (app: App): Map<string, string> => {
  const known = Object.keys(app.strapi.contentTypes);
  const possible = known.filter(isSiteType).sort().join(', ') || 'none';
  const unknown = new Map<string, string>();
  for (const uid of named(app).keys()) {
    if (uid === FILE) {
      unknown.set(uid, `${OPTION}: events of files need sources.media: true, not "${uid}".`);
    } else if (!known.includes(uid) || !isContent(uid)) {
      const hint = uid === '*' ? " Use '*' by itself, not in a list." : '';
      const wrong = known.includes(uid)
        ? `"${uid}" is not a content type of this site`
        : `there is no content type "${uid}"`;
      unknown.set(uid, `${OPTION}: ${wrong}.${hint} Possible: ${possible}.`);
    }
  }
  return unknown;
};

/** Checks that the types of `sources.entries` exist; `strapi develop` logs missing ones. @throws EntryTypeError */
export const checkEntryTypes = (app: App): void => {
  const lines = [...unknownTypes(app).values()];
  if (lines.length > 0 && app.strapi.config.get('autoReload') !== true) {
    throw new EntryTypeError(lines.join('\n'));
  }
  for (const line of lines) app.log.warn(`switchboard: ${line}`);
};

const eventsOf = (draftAndPublish: boolean, drafts: boolean): readonly string[] =>
  ENTRY_EVENTS.filter((event) => {
    if (!draftAndPublish) return !event.endsWith('published');
    return drafts || event !== 'entry.created';
  });

const resolve = (app: App): EntryTypes => {
  const describe = createDescriber({
    model: (uid) => modelOf(app, uid),
    isPrivate: (model, name) => contentTypes.isPrivateAttribute(model as never, name),
  });
  const common = (uid: string) => {
    const shape = describe(uid);
    return { uid: uid as ContentTypeUid, shape, populate: populateOf(shape) };
  };
  const unknown = unknownTypes(app);
  const types = new Map<string, EntryType>();
  for (const [uid, drafts] of named(app)) {
    if (unknown.has(uid)) continue;
    const draftAndPublish = hasDrafts(modelOf(app, uid));
    types.set(uid, {
      ...common(uid),
      draftAndPublish,
      localized: isLocalized(app.strapi, uid),
      drafts: draftAndPublish && drafts,
      events: eventsOf(draftAndPublish, drafts),
    });
  }
  if (app.options.sources.media && app.strapi.plugins.upload) {
    const plain = { draftAndPublish: false, localized: false, drafts: false };
    types.set(FILE, { ...common(FILE), ...plain, events: MEDIA_EVENTS });
  }
  return types;
};

/** True if the site's options name any type: otherwise nothing is listened to. */
export const namesEntryTypes = (app: App): boolean => {
  const { entries, media } = app.options.sources;
  return media === true || entries === '*' || (entries?.length ?? 0) > 0;
};

/** The types that the site's options name. To be called once every plugin has registered. */
export const getEntryTypes = (app: App): EntryTypes => app.part(resolve);
