import { isLocalized } from '../../database/written-rows';
import { eventsOfKind, KIND_RULES } from '../rules';
import type { Form } from './forms';
import type { AttributeShape, MappedField, Source } from './mapping';
import type { App } from '../../app';

/** A type whose writes become events, and what of the host's features it uses. */
export interface WatchedSource {
  readonly source: Source;
  readonly uid: string;
  /** Every event that a write to it may cause. */
  readonly events: readonly string[];
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

/** A relation that a payload (or the tags) of a watched type is read from. */
export interface WatchedRelation {
  readonly watched: WatchedSource;
  /** The type at its other end. */
  readonly target: string;
  /** The watched type's attribute, such as `tags`. */
  readonly attribute: string;
  /** The attribute at the other end, such as `contacts`; null where the relation has one way only. */
  readonly inverse: string | null;
  /** A record at the other end has one watched record at most: another one takes it from that one. */
  readonly exclusive: boolean;
}

export interface WatchPlan {
  readonly byUid: ReadonlyMap<string, readonly WatchedSource[]>;
  readonly relationsByTarget: ReadonlyMap<string, readonly WatchedRelation[]>;
  /** By the watched type. */
  readonly exclusiveRelations: ReadonlyMap<string, readonly WatchedRelation[]>;
  /** Every event that a write to a type may cause, by the type. */
  readonly eventsByUid: ReadonlyMap<string, readonly string[]>;
  /** Types of which one call of the document service writes several rows, at either end. */
  readonly compound: ReadonlySet<string>;
  /** Every type with a part in some event. */
  readonly uids: readonly string[];
}

interface RelationShape extends AttributeShape {
  inversedBy?: string;
  mappedBy?: string;
}

interface TypeSchema {
  attributes: Record<string, RelationShape>;
  options?: { draftAndPublish?: boolean };
}

const schemaOf = (app: App, uid: string): TypeSchema =>
  app.strapi.contentTypes[uid as keyof typeof app.strapi.contentTypes] as unknown as TypeSchema;

/** The host's features that give one record several rows. */
const rowFeatures = (
  app: App,
  uid: string
): Pick<WatchedSource, 'draftAndPublish' | 'localized'> => {
  return {
    draftAndPublish: schemaOf(app, uid).options?.draftAndPublish === true,
    localized: isLocalized(app.strapi, uid),
  };
};

const groupBy = <K, T>(all: readonly T[], keyOf: (one: T) => K): Map<K, T[]> => {
  const groups = new Map<K, T[]>();
  for (const one of all) {
    const group = groups.get(keyOf(one));
    if (group) group.push(one);
    else groups.set(keyOf(one), [one]);
  }
  return groups;
};

/** The key of the payload that a path is in: `dates` for `dates.created_at`. */
const keyOf = ({ path }: MappedField): string => path.split('.')[0] ?? path;

const isNamePart = ({ path }: MappedField): boolean =>
  path === 'first_name' || path === 'last_name';

/** Where neither an attribute nor a function holds the name of a contact, its parts make it. */
const isNameMadeOfParts = (source: Source): boolean =>
  source.fields.some(({ path, attribute, compute }) => path === 'name' && !attribute && !compute);

const keysByAttributeOf = (source: Source): Map<string, string[]> => {
  const keysByAttribute = new Map<string, string[]>();
  const add = (attribute: string, key: string): void => {
    keysByAttribute.set(attribute, [...(keysByAttribute.get(attribute) ?? []), key]);
  };
  const nameHasParts = isNameMadeOfParts(source);
  for (const field of source.fields) {
    if (!field.attribute) continue;
    add(field.attribute, keyOf(field));
    if (nameHasParts && isNamePart(field)) add(field.attribute, 'name');
  }
  return keysByAttribute;
};

const relationsOf = ({ fields, tags }: Source): string[] => {
  const attributes = fields
    .filter(({ shape }) => shape?.type === 'relation')
    .flatMap(({ attribute }) => attribute ?? []);
  return [...new Set([...(tags ? [tags] : []), ...attributes])];
};

/** Joins a source to what its content type says of itself. */
export const inspectSource = (
  app: App,
  source: Source,
  tagSource: Source,
  form: Form | null = null
): WatchedSource => ({
  source,
  uid: source.uid,
  // Whoever sends a form becomes a contact.
  events: form ? [...eventsOfKind('form'), ...eventsOfKind('contact')] : eventsOfKind(source.kind),
  form,
  tagSource,
  ...rowFeatures(app, source.uid),
  components: source.fields.some(({ shape }) => shape?.type === 'component'),
  keysByAttribute: keysByAttributeOf(source),
  computedKeys: source.fields.filter(({ compute }) => compute).map(keyOf),
  allKeys: ['id', ...new Set(source.fields.map(keyOf))],
  bookkeeping: new Set(source.fields.filter((field) => field.bookkeeping).map(({ path }) => path)),
  relations: relationsOf(source),
});

const watchedRelations = (app: App, watched: WatchedSource): WatchedRelation[] => {
  const { attributes } = schemaOf(app, watched.uid);
  return watched.relations.flatMap((attribute) => {
    const { target, relation, inversedBy, mappedBy } = attributes[attribute] ?? {};
    if (!target) return [];
    const inverse = inversedBy ?? mappedBy ?? null;
    // Of a relation that has one way only the host takes nothing from anybody.
    const exclusive = inverse !== null && /^oneTo(One|Many)$/.test(relation ?? '');
    return [{ watched, target, attribute, inverse, exclusive }];
  });
};

/** Which types to watch, from where a site keeps its CRM objects. */
export const planWatch = (
  app: App,
  sources: ReadonlyMap<string, Source>,
  forms: readonly Form[]
): WatchPlan => {
  const tagSource = sources.get('tag');
  if (!tagSource) throw new Error('switchboard: no content type holds the tags');

  const records = [...sources.values()]
    .filter(({ kind }) => KIND_RULES[kind])
    .map((source) => inspectSource(app, source, tagSource));
  const entries = forms.map((form) => inspectSource(app, form.source, tagSource, form));
  const byUid = groupBy([...records, ...entries], ({ uid }) => uid);

  const relations = records.flatMap((watched) => watchedRelations(app, watched));
  const relationsByTarget = groupBy(relations, ({ target }) => target);
  const exclusiveRelations = groupBy(
    relations.filter(({ exclusive }) => exclusive),
    ({ watched }) => watched.uid
  );

  const uids = [...new Set([...byUid.keys(), ...relationsByTarget.keys()])];
  const eventsOf = (uid: string): string[] => [
    ...new Set(
      [
        ...(byUid.get(uid) ?? []),
        ...(relationsByTarget.get(uid) ?? []).map(({ watched }) => watched),
      ].flatMap(({ events }) => events)
    ),
  ];
  const isCompound = (uid: string): boolean => {
    const { draftAndPublish, localized } = rowFeatures(app, uid);
    return draftAndPublish || localized || (byUid.get(uid)?.some((one) => one.components) ?? false);
  };
  return {
    byUid,
    relationsByTarget,
    exclusiveRelations,
    eventsByUid: new Map(uids.map((uid) => [uid, eventsOf(uid)])),
    compound: new Set(uids.filter(isCompound)),
    uids,
  };
};
