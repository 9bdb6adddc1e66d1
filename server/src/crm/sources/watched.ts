import type { Core } from '@strapi/strapi';
import { KIND_RULES } from '../rules';
import type { Form } from '../forms/resolve-form';
import type { AttributeShape, Source } from './mapping';

/** A type whose writes become events, and what of the host's features it uses. */
export interface WatchedSource {
  readonly source: Source;
  readonly uid: string;
  /** Set where an entry is a form that somebody sent. */
  readonly form: Form | null;
  /** Where contacts are concerned: how their tags are read. */
  readonly tagSource: Source;
  readonly draftAndPublish: boolean;
  readonly localized: boolean;
  /** A payload key is read from a component, whose rows are written before the record's own. */
  readonly components: boolean;
  /** The keys of the payload that each attribute feeds. */
  readonly keysByAttribute: ReadonlyMap<string, readonly string[]>;
  /** Keys that a function computes: any write may change them. */
  readonly computedKeys: readonly string[];
  readonly allKeys: readonly string[];
  readonly bookkeeping: ReadonlySet<string>;
  /** Relations that a payload (or the tags) is read from. */
  readonly relations: readonly string[];
}

/** A relation of a watched type, seen from the type at its other end. */
export interface Opposite {
  readonly watched: WatchedSource;
  /** The watched type's attribute, such as `tags`. */
  readonly attribute: string;
  /** The attribute at this end, such as `contacts`; null where the relation has one way only. */
  readonly inverse: string | null;
  /** A record at this end is linked to one watched record at most: another one takes it from it. */
  readonly exclusive: boolean;
}

export interface WatchPlan {
  readonly byUid: ReadonlyMap<string, readonly WatchedSource[]>;
  /** By the type at the other end. */
  readonly opposites: ReadonlyMap<string, readonly Opposite[]>;
  /** By the watched type: its exclusive relations, which one of its records takes from another. */
  readonly rivalries: ReadonlyMap<string, readonly Opposite[]>;
  /** Types of which one call of the document service writes several rows, at either end. */
  readonly compound: ReadonlySet<string>;
  /** Every type with a part in some event. */
  readonly uids: readonly string[];
}

const keyOf = (path: string): string => path.split('.')[0] ?? path;

/** The host's features that give one record several rows. */
const rowsOf = (
  strapi: Core.Strapi,
  uid: string
): Pick<WatchedSource, 'draftAndPublish' | 'localized'> => {
  const { options, pluginOptions } = strapi.contentTypes[
    uid as keyof typeof strapi.contentTypes
  ] as {
    options?: { draftAndPublish?: boolean };
    pluginOptions?: { i18n?: { localized?: boolean } };
  };
  return {
    draftAndPublish: options?.draftAndPublish === true,
    localized: pluginOptions?.i18n?.localized === true && Boolean(strapi.plugins.i18n),
  };
};

/** Joins a source to what its content type says of itself. */
export const inspectSource = (
  strapi: Core.Strapi,
  source: Source,
  tagSource: Source,
  form: Form | null = null
): WatchedSource => {
  const keysByAttribute = new Map<string, string[]>();
  const relations = new Set<string>(source.tags ? [source.tags] : []);
  for (const field of source.fields) {
    if (!field.attribute) continue;
    const keys = keysByAttribute.get(field.attribute) ?? [];
    keysByAttribute.set(field.attribute, [...keys, keyOf(field.path)]);
    if (field.shape?.type === 'relation') relations.add(field.attribute);
  }
  // A contact's name is made of its parts where no attribute holds it.
  if (
    source.fields.some(({ path, attribute, compute }) => path === 'name' && !attribute && !compute)
  ) {
    for (const { path, attribute } of source.fields) {
      if (attribute && (path === 'first_name' || path === 'last_name')) {
        keysByAttribute.get(attribute)?.push('name');
      }
    }
  }
  return {
    source,
    uid: source.uid,
    form,
    tagSource,
    ...rowsOf(strapi, source.uid),
    components: source.fields.some(({ shape }) => shape?.type === 'component'),
    keysByAttribute,
    computedKeys: source.fields.filter(({ compute }) => compute).map(({ path }) => keyOf(path)),
    allKeys: ['id', ...new Set(source.fields.map(({ path }) => keyOf(path)))],
    bookkeeping: new Set(
      source.fields.filter((field) => field.bookkeeping).map(({ path }) => path)
    ),
    relations: [...relations],
  };
};

interface RelationShape extends AttributeShape {
  inversedBy?: string;
  mappedBy?: string;
}

/** Which types to watch, from where a site keeps its CRM objects. */
export const planWatch = (
  strapi: Core.Strapi,
  sources: ReadonlyMap<string, Source>,
  forms: readonly Form[]
): WatchPlan => {
  const byUid = new Map<string, WatchedSource[]>();
  const opposites = new Map<string, Opposite[]>();
  const rivalries = new Map<string, Opposite[]>();
  const tagSource = sources.get('tag');
  if (!tagSource) throw new Error('switchboard: no content type holds the tags');
  for (const source of sources.values()) {
    if (!KIND_RULES[source.kind]) continue;
    const watched = inspectSource(strapi, source, tagSource);
    byUid.set(source.uid, [...(byUid.get(source.uid) ?? []), watched]);
    const { attributes } = strapi.contentTypes[
      source.uid as keyof typeof strapi.contentTypes
    ] as unknown as { attributes: Record<string, RelationShape> };
    for (const attribute of watched.relations) {
      const { target, relation, inversedBy, mappedBy } = attributes[attribute] ?? {};
      if (!target) continue;
      const inverse = inversedBy ?? mappedBy ?? null;
      // Of a relation that has one way only the host takes nothing from anybody.
      const exclusive = inverse !== null && /^oneTo(One|Many)$/.test(relation ?? '');
      const opposite = { watched, attribute, inverse, exclusive };
      opposites.set(target, [...(opposites.get(target) ?? []), opposite]);
      if (exclusive) rivalries.set(source.uid, [...(rivalries.get(source.uid) ?? []), opposite]);
    }
  }
  for (const form of forms) {
    const watched = inspectSource(strapi, form.source, tagSource, form);
    byUid.set(form.uid, [...(byUid.get(form.uid) ?? []), watched]);
  }
  const uids = [...new Set([...byUid.keys(), ...opposites.keys()])];
  const isCompound = (uid: string): boolean => {
    const { draftAndPublish, localized } = rowsOf(strapi, uid);
    return draftAndPublish || localized || (byUid.get(uid)?.some((one) => one.components) ?? false);
  };
  return { byUid, opposites, rivalries, compound: new Set(uids.filter(isCompound)), uids };
};
