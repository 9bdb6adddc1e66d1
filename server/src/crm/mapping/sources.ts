import { isLocalized } from '../../database/written-rows';
import { eventsOfKind, type Kind, KIND_RULES, KINDS } from '../rules';
import {
  type AttributeShape,
  type Form,
  type MappedField,
  MappingError,
  resolveForm,
  resolveSource,
  type Source,
} from './mapping';
import type { App } from '../../app';

/** A type whose writes become events, and what of the host's features it uses. */
export interface WatchedSource {
  readonly source: Source;
  readonly uid: string;
  readonly events: readonly string[];
  /** Set where an entry is a form that somebody sent. */
  readonly form: Form | null;
  /** Contacts only: how their tags are read. */
  readonly tagSource: Source;
  readonly draftAndPublish: boolean;
  readonly localized: boolean;
  /** A payload key is read from a component, whose rows are written before the record's own. */
  readonly components: boolean;
  /** Its own row and its relations are all that there is of it: one row, no components, no media. */
  readonly isOneRow: boolean;
  /** The keys of the payload that each attribute feeds. */
  readonly keysByAttribute: ReadonlyMap<string, readonly string[]>;
  /** Keys that a function computes: any write may change them. */
  readonly computedKeys: readonly string[];
  readonly allKeys: readonly string[];
  readonly bookkeeping: ReadonlySet<string>;
  readonly relations: readonly string[];
}

/** A relation that a payload (or the tags) of a watched type is read from. */
export interface WatchedRelation {
  readonly watched: WatchedSource;
  readonly target: string;
  /** The watched type's attribute, such as `tags`. */
  readonly attribute: string;
  /** The attribute at the other end, such as `contacts`; null if the relation has one way only. */
  readonly inverse: string | null;
  /** A record at the other end has one watched record at most: another one takes it from that one. */
  readonly exclusive: boolean;
}

export interface WatchPlan {
  readonly byUid: ReadonlyMap<string, readonly WatchedSource[]>;
  readonly relationsByTarget: ReadonlyMap<string, readonly WatchedRelation[]>;
  readonly exclusiveRelations: ReadonlyMap<string, readonly WatchedRelation[]>;
  readonly eventsByUid: ReadonlyMap<string, readonly string[]>;
  /** Types of which one call of the document service writes several rows, at either end. */
  readonly compound: ReadonlySet<string>;
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

const schemaOf = (app: App, uid: string): TypeSchema | undefined =>
  (app.strapi.contentTypes as unknown as Record<string, TypeSchema | undefined>)[uid];

const attributesOf = (app: App) => (uid: string) => schemaOf(app, uid)?.attributes;

/** The site's own content types, which is what a mapping may name. */
const siteTypes = (app: App) => (): string[] =>
  Object.keys(app.strapi.contentTypes).filter((uid) => uid.startsWith('api::'));

/** The tags of a contact are events only where they are the tags that this site knows as tags. */
const checkTags = (contact: Source, tag: Source, explicit: boolean, target?: string): Source => {
  if (!contact.tags || target === tag.uid) return contact;
  if (!explicit) return { ...contact, tags: null };
  throw new MappingError(
    `switchboard.sources.contact.fields.tags: "${contact.tags}" relates to ${target}, but tags are ` +
      `${tag.uid}. Map that type too: sources.tag = { contentType: '${target}' }.`
  );
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

/** If neither an attribute nor a function holds the name of a contact, its parts make it. */
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

const inspect = (app: App, source: Source, tagSource: Source, form: Form | null): WatchedSource => {
  const { uid, kind, fields } = source;
  const isOf = (type: string): boolean => fields.some(({ shape }) => shape?.type === type);
  const draftAndPublish = schemaOf(app, uid)?.options?.draftAndPublish === true;
  const localized = isLocalized(app.strapi, uid);
  const components = isOf('component');
  return {
    source,
    uid,
    // The sender of a form becomes a contact.
    events: form ? [...eventsOfKind('form'), ...eventsOfKind('contact')] : eventsOfKind(kind),
    form,
    tagSource,
    draftAndPublish,
    localized,
    components,
    isOneRow: !draftAndPublish && !localized && !components && !isOf('media'),
    keysByAttribute: keysByAttributeOf(source),
    computedKeys: fields.filter(({ compute }) => compute).map(keyOf),
    allKeys: ['id', ...new Set(fields.map(keyOf))],
    bookkeeping: new Set(fields.filter((field) => field.bookkeeping).map(({ path }) => path)),
    relations: relationsOf(source),
  };
};

const inspectAll = (app: App): ReadonlyMap<Kind, WatchedSource> => {
  const options = app.options.sources as Partial<Record<Kind, Parameters<typeof resolveSource>[1]>>;
  const describe = attributesOf(app);
  const sources = new Map(
    KINDS.map((kind) => [kind, resolveSource(kind, options[kind], describe, siteTypes(app))])
  );
  const tag = sources.get('tag') as Source;
  const contact = sources.get('contact') as Source;
  const target = contact.tags ? describe(contact.uid)?.[contact.tags]?.target : undefined;
  const explicit = options.contact?.fields?.tags !== undefined;
  sources.set('contact', checkTags(contact, tag, explicit, target));
  return new Map([...sources].map(([kind, source]) => [kind, inspect(app, source, tag, null)]));
};

/**
 * The type that holds the CRM objects of a kind: the plugin's own, or the one that the options map.
 * @throws MappingError, which stops the boot and lists what is possible.
 */
export const getInspected = (app: App, kind: Kind): WatchedSource =>
  app.part(inspectAll).get(kind) as WatchedSource;

export const getSource = (app: App, kind: Kind): Source => getInspected(app, kind).source;

/** The content types that the site's options name as forms whose sender is added to the CRM. */
const formsOf = (app: App): WatchedSource[] =>
  app.options.forms
    .map((option, index) => resolveForm(index, option, attributesOf(app), siteTypes(app)))
    .filter((_form, index) => app.options.forms[index]?.addSender)
    .map((form) => inspect(app, form.source, getSource(app, 'tag'), form));

const watchedRelations = (app: App, watched: WatchedSource): WatchedRelation[] =>
  watched.relations.flatMap((attribute) => {
    const shape = schemaOf(app, watched.uid)?.attributes[attribute];
    if (!shape?.target) return [];
    const inverse = shape.inversedBy ?? shape.mappedBy ?? null;
    // A one-way relation takes no record from its previous holder.
    const exclusive = inverse !== null && /^oneTo(One|Many)$/.test(shape.relation ?? '');
    return [{ watched, target: shape.target, attribute, inverse, exclusive }];
  });

const planWatch = (app: App): WatchPlan => {
  const records = [...app.part(inspectAll)]
    .filter(([kind]) => KIND_RULES[kind])
    .map(([, watched]) => watched);
  const byUid = groupBy([...records, ...formsOf(app)], ({ uid }) => uid);
  const relations = records.flatMap((watched) => watchedRelations(app, watched));
  const relationsByTarget = groupBy(relations, ({ target }) => target);
  const exclusive = relations.filter((relation) => relation.exclusive);
  const uids = [...new Set([...byUid.keys(), ...relationsByTarget.keys()])];
  const eventsOf = (uid: string): string[] => {
    const ends = (relationsByTarget.get(uid) ?? []).map(({ watched }) => watched);
    return [...new Set([...(byUid.get(uid) ?? []), ...ends].flatMap(({ events }) => events))];
  };
  const isCompound = (uid: string): boolean =>
    schemaOf(app, uid)?.options?.draftAndPublish === true ||
    isLocalized(app.strapi, uid) ||
    (byUid.get(uid)?.some((one) => one.components) ?? false);
  return {
    byUid,
    relationsByTarget,
    exclusiveRelations: groupBy(exclusive, ({ watched }) => watched.uid),
    eventsByUid: new Map(uids.map((uid) => [uid, eventsOf(uid)])),
    compound: new Set(uids.filter(isCompound)),
    uids,
  };
};

export const getWatchPlan = (app: App): WatchPlan => app.part(planWatch);

/** Every event that a write to a type may cause. */
export const eventsAbout = (app: App, uid: string): readonly string[] =>
  getWatchPlan(app).eventsByUid.get(uid) ?? [];

/** The column of a value of the payload. */
export interface ValueColumn {
  tableName: string;
  attribute: string;
  column: string;
  shape: AttributeShape;
}

/** @returns null if the site does not keep it in a column of the type's own */
export const columnOf = (
  app: App,
  { uid, source }: WatchedSource,
  path: string
): ValueColumn | null => {
  const field = source.fields.find((one) => one.path === path);
  if (!field?.attribute || !field.shape) return null;
  const { attribute, shape } = field;
  const { tableName, attributes } = app.strapi.db.metadata.get(uid);
  const { columnName } = attributes[attribute] as { columnName?: string };
  return { tableName, attribute, column: columnName ?? attribute, shape };
};
