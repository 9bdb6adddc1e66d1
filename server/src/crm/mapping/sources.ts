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

interface TypeSchema {
  attributes: Record<string, AttributeShape & { inversedBy?: string; mappedBy?: string }>;
  options?: { draftAndPublish?: boolean };
}

const typesOf = ({ strapi }: App) =>
  strapi.contentTypes as unknown as Readonly<Record<string, TypeSchema | undefined>>;

/** The tags of a contact are events only where they are the tags that this site knows as tags. */
const checkTags = (contact: Source, tag: Source, explicit: boolean, target?: string): Source => {
  if (!contact.tags || target === tag.uid) return contact;
  if (!explicit) return { ...contact, tags: null };
  throw new MappingError(
    `switchboard.sources.contact.fields.tags: "${contact.tags}" relates to ${target}, but tags are ${tag.uid}. Map that type too: sources.tag = { contentType: '${target}' }.`
  );
};

const groupBy = <K, T>(all: readonly T[], keyOf: (one: T) => K): Map<K, T[]> => {
  const groups = new Map<K, T[]>();
  for (const one of all) groups.set(keyOf(one), [...(groups.get(keyOf(one)) ?? []), one]);
  return groups;
};

/** The key of the payload that a path is in: `dates` for `dates.created_at`. */
const keyOf = ({ path }: MappedField): string => path.split('.')[0] ?? path;

const keysByAttributeOf = ({ fields }: Source): Map<string, string[]> => {
  const keysByAttribute = new Map<string, string[]>();
  const add = (attribute: string, key: string): void => {
    keysByAttribute.set(attribute, [...(keysByAttribute.get(attribute) ?? []), key]);
  };
  // If neither an attribute nor a function holds the name of a contact, its parts make it.
  const name = fields.find(({ path }) => path === 'name');
  const parts = name && !name.attribute && !name.compute ? ['first_name', 'last_name'] : [];
  for (const field of fields) {
    if (!field.attribute) continue;
    add(field.attribute, keyOf(field));
    if (parts.includes(field.path)) add(field.attribute, 'name');
  }
  return keysByAttribute;
};

const relationsOf = ({ fields, tags }: Source): string[] => {
  const related = fields.filter(({ shape }) => shape?.type === 'relation');
  return [...new Set([tags ?? [], ...related.map(({ attribute }) => attribute ?? [])].flat())];
};

const inspect = (app: App, source: Source, tagSource: Source, form: Form | null) => {
  const { uid, kind, fields } = source;
  const isOf = (type: string): boolean => fields.some(({ shape }) => shape?.type === type);
  const draftAndPublish = typesOf(app)[uid]?.options?.draftAndPublish === true;
  const localized = isLocalized(app.strapi, uid);
  const components = isOf('component');
  return {
    source,
    uid,
    // The sender of a form becomes a contact.
    events: form ? [...eventsOfKind('form'), ...eventsOfKind('contact')] : eventsOfKind(kind),
    /** Set where an entry is a form that somebody sent. */
    form,
    /** Contacts only: how their tags are read. */
    tagSource,
    draftAndPublish,
    localized,
    /** A payload key is read from a component, whose rows are written before the record's own. */
    components,
    /** It has one row and its relations, and no components or media. */
    isOneRow: !draftAndPublish && !localized && !components && !isOf('media'),
    /** The keys of the payload that each attribute feeds. */
    keysByAttribute: keysByAttributeOf(source),
    /** Keys that a function computes: any write may change them. */
    computedKeys: fields.filter(({ compute }) => compute).map(keyOf),
    allKeys: ['id', ...new Set(fields.map(keyOf))],
    bookkeeping: new Set(fields.filter((field) => field.bookkeeping).map(({ path }) => path)),
    relations: relationsOf(source),
  };
};

/** A type whose writes become events, and what of the host's features it uses. */
export type WatchedSource = Readonly<ReturnType<typeof inspect>>;

const inspectAll = (app: App): ReadonlyMap<Kind, WatchedSource> => {
  const options = app.options.sources as Partial<Record<Kind, Parameters<typeof resolveSource>[1]>>;
  const types = typesOf(app);
  const sources = new Map(KINDS.map((kind) => [kind, resolveSource(kind, options[kind], types)]));
  const tag = sources.get('tag') as Source;
  const contact = sources.get('contact') as Source;
  const target = contact.tags ? types[contact.uid]?.attributes[contact.tags]?.target : undefined;
  const explicit = options.contact?.fields?.tags !== undefined;
  sources.set('contact', checkTags(contact, tag, explicit, target));
  return new Map([...sources].map(([kind, source]) => [kind, inspect(app, source, tag, null)]));
};

/** The type that holds a kind of record: the plugin's own, or a mapped one. @throws MappingError at boot */
export const getInspected = (app: App, kind: Kind): WatchedSource =>
  app.part(inspectAll).get(kind) as WatchedSource;

export const getSource = (app: App, kind: Kind): Source => getInspected(app, kind).source;

/** The content types that the site's options name as forms whose sender is added to the CRM. */
const formsOf = (app: App): WatchedSource[] =>
  app.options.forms
    .map((option, index) => resolveForm(index, option, typesOf(app)))
    .filter((_form, index) => app.options.forms[index]?.addSender)
    .map((form) => inspect(app, form.source, getSource(app, 'tag'), form));

/** The relations that a payload (or the tags) of a watched type is read from. */
const watchedRelations = (app: App, watched: WatchedSource) =>
  watched.relations.flatMap((attribute) => {
    const shape = typesOf(app)[watched.uid]?.attributes[attribute];
    if (!shape?.target) return [];
    // The attribute at the other end, such as `contacts`; null if the relation has one way only.
    const inverse = shape.inversedBy ?? shape.mappedBy ?? null;
    // A record at the other end has one watched record at most: another one takes it from that one. A
    // one-way relation takes no record from its previous holder.
    const exclusive = inverse !== null && /^oneTo(One|Many)$/.test(shape.relation ?? '');
    return [{ watched, target: shape.target, attribute, inverse, exclusive }];
  });

export type WatchedRelation = ReturnType<typeof watchedRelations>[number];

const planWatch = (app: App) => {
  const kinds = KINDS.filter((kind) => KIND_RULES[kind]);
  const records = kinds.map((kind) => getInspected(app, kind));
  const byUid = groupBy([...records, ...formsOf(app)], ({ uid }) => uid);
  const relations = records.flatMap((watched) => watchedRelations(app, watched));
  const relationsByTarget = groupBy(relations, ({ target }) => target);
  const exclusive = relations.filter((relation) => relation.exclusive);
  const uids = [...new Set([...byUid.keys(), ...relationsByTarget.keys()])];
  const eventsOf = (uid: string): readonly string[] => {
    const ends = (relationsByTarget.get(uid) ?? []).map(({ watched }) => watched);
    return [...new Set([...(byUid.get(uid) ?? []), ...ends].flatMap(({ events }) => events))];
  };
  const isCompound = (uid: string): boolean =>
    typesOf(app)[uid]?.options?.draftAndPublish === true ||
    isLocalized(app.strapi, uid) ||
    (byUid.get(uid)?.some((one) => one.components) ?? false);
  return {
    byUid,
    relationsByTarget,
    exclusiveRelations: groupBy(exclusive, ({ watched }) => watched.uid),
    eventsByUid: new Map(uids.map((uid) => [uid, eventsOf(uid)])),
    /** Types of which one call of the document service writes several rows, at either end. */
    compound: new Set(uids.filter(isCompound)),
    uids,
  };
};

export type WatchPlan = ReturnType<typeof planWatch>;

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
