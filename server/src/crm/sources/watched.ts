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
}

export interface WatchPlan {
  readonly byUid: ReadonlyMap<string, readonly WatchedSource[]>;
  readonly opposites: ReadonlyMap<string, readonly Opposite[]>;
  /** Every type with a part in some event. */
  readonly uids: readonly string[];
}

const keyOf = (path: string): string => path.split('.')[0] ?? path;

/** Joins a source to what its content type says of itself. */
export const inspectSource = (
  strapi: Core.Strapi,
  source: Source,
  tagSource: Source,
  form: Form | null = null
): WatchedSource => {
  const { options, pluginOptions } = strapi.contentTypes[
    source.uid as keyof typeof strapi.contentTypes
  ] as {
    options?: { draftAndPublish?: boolean };
    pluginOptions?: { i18n?: { localized?: boolean } };
  };
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
    draftAndPublish: options?.draftAndPublish === true,
    localized: pluginOptions?.i18n?.localized === true && Boolean(strapi.plugins.i18n),
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
      const { target, inversedBy, mappedBy } = attributes[attribute] ?? {};
      if (!target) continue;
      const opposite = { watched, attribute, inverse: inversedBy ?? mappedBy ?? null };
      opposites.set(target, [...(opposites.get(target) ?? []), opposite]);
    }
  }
  for (const form of forms) {
    const watched = inspectSource(strapi, form.source, tagSource, form);
    byUid.set(form.uid, [...(byUid.get(form.uid) ?? []), watched]);
  }
  return { byUid, opposites, uids: [...new Set([...byUid.keys(), ...opposites.keys()])] };
};
