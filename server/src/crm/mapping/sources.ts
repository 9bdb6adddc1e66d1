import { isLocalized } from '../../database/written-rows';
import { eventsOfKind, type Kind, KIND_RULES, KINDS } from '../rules';
import type { App } from '../../app';
import { type FieldDefinition, type FieldType, KIND_DEFINITIONS } from './kinds';

export type Entry = Record<string, unknown>;

/** The parts of a content type's attribute that a mapping looks at. */
export interface AttributeShape {
  type: string;
  private?: boolean;
  relation?: string;
  target?: string;
  component?: string;
}

type FieldSource = string | ((entry: Entry) => unknown);

interface SourceOption {
  contentType: string;
  fields: Record<string, FieldSource>;
}

export interface MappedField {
  readonly path: string;
  /** The key of the payload, and the inner one if the path has one. */
  readonly keys: readonly [string, string?];
  readonly type: FieldType;
  readonly bookkeeping: boolean;
  readonly attribute: string | null;
  readonly shape: AttributeShape | null;
  readonly compute: ((entry: Entry) => unknown) | null;
}

/** A kind of CRM object and the content type, with its attributes, that holds it on this site. */
export interface Source {
  readonly kind: Kind | 'form';
  readonly uid: string;
  readonly own: boolean;
  readonly fields: readonly MappedField[];
  readonly tags: string | null;
}

/** The mapping contradicts the site's schema. It stops the boot, and lists what is possible. */
class MappingError extends Error {}

const SCALARS = new Set([
  ...['string', 'text', 'richtext', 'email', 'uid', 'enumeration', 'json', 'customField'],
  ...['integer', 'biginteger', 'float', 'decimal', 'boolean'],
  ...['date', 'time', 'datetime', 'timestamp'],
]);

const isReadable = (shape: AttributeShape): boolean =>
  SCALARS.has(shape.type) ||
  shape.type === 'component' ||
  shape.type === 'media' ||
  (shape.type === 'relation' && typeof shape.target === 'string');

const suits = (type: FieldType, shape: AttributeShape): boolean => {
  const isToOne = shape.type === 'relation' && (shape.relation ?? '').endsWith('ToOne');
  if (type === 'owner') return isToOne && shape.target === 'admin::user';
  if (type === 'ref') return isToOne && shape.target !== 'admin::user';
  if (type === 'bag') return shape.type === 'json' || shape.type === 'component';
  if (type === 'time') return shape.type === 'datetime' || shape.type === 'timestamp';
  return SCALARS.has(shape.type) && shape.type !== 'json';
};

/** Attributes that a payload key is read from if the site's mapping has none. */
const guesses = (field: FieldDefinition): string[] => {
  const leaf = field.path.split('.').at(-1) ?? field.path;
  const camelCase = (name: string): string =>
    name.replace(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase());
  const names = [field.attribute, leaf, leaf.replace(/_id$/, '')];
  return [...new Set(names.flatMap((name) => [name, camelCase(name)]))].filter(Boolean);
};

const list = (names: Iterable<string>): string => [...names].sort().join(', ');

const CUSTOM = /^fields\.[^.]+$/;

type Field = Pick<FieldDefinition, 'path' | 'type' | 'bookkeeping'>;
type Attributes = Readonly<Record<string, AttributeShape>>;

interface Type {
  uid: string;
  attributes: Attributes;
}

type Types = Readonly<Record<string, Pick<Type, 'attributes'> | undefined>>;

const keysIn = (path: string): MappedField['keys'] => {
  const dot = path.indexOf('.');
  return dot < 0 ? [path] : [path.slice(0, dot), path.slice(dot + 1)];
};

const mapped = (
  { path, type, bookkeeping }: Field,
  from: Partial<Pick<MappedField, 'attribute' | 'shape' | 'compute'>> = {}
): MappedField => ({
  path,
  keys: keysIn(path),
  type,
  bookkeeping: bookkeeping === true,
  attribute: null,
  shape: null,
  compute: null,
  ...from,
});

/** @throws MappingError if the type has no such attribute, listing those that are offered. */
const shapeOf = (
  at: string,
  from: string,
  { uid, attributes }: Type,
  isOffered: (name: string, shape: AttributeShape) => boolean
): AttributeShape => {
  const shape = attributes[from];
  if (shape && shape.type !== 'password') return shape;
  const possible = Object.entries(attributes).filter(([name, one]) => isOffered(name, one));
  throw new MappingError(
    `${at}: ${uid} has no attribute "${from}" to read. Possible: ${list(possible.map(([name]) => name))}.`
  );
};

/** @throws MappingError if the site has no such type, listing its own, which is what a mapping may name. */
const requireType = (at: string, uid: string, types: Types): Attributes => {
  const type = types[uid];
  if (type) return type.attributes;
  const possible = Object.keys(types).filter((known) => known.startsWith('api::'));
  throw new MappingError(
    `${at}.contentType: there is no content type "${uid}". Possible: ${list(possible)}.`
  );
};

const explicitField = (at: string, field: Field, from: FieldSource, type: Type): MappedField => {
  if (typeof from === 'function') return mapped(field, { compute: from });
  const shape = shapeOf(at, from, type, (_name, one) => one.type !== 'password');
  if (!isReadable(shape)) {
    throw new MappingError(
      `${at}: the attribute "${from}" of ${type.uid} is a ${shape.type}, which no payload can carry. Use a function of the entry instead.`
    );
  }
  return mapped(field, { attribute: from, shape });
};

const impliedField = (field: FieldDefinition, attributes: Attributes, own: boolean) => {
  for (const name of own ? [field.attribute] : guesses(field)) {
    const shape = attributes[name];
    if (!shape || shape.private || !suits(field.type, shape)) continue;
    return mapped(field, { attribute: name, shape });
  }
  return mapped(field);
};

/** Joins a kind's payload keys to the attributes of its content type. @throws MappingError */
const resolveSource = (kind: Kind, option: SourceOption | undefined, types: Types): Source => {
  const definition = KIND_DEFINITIONS[kind];
  const uid = option?.contentType ?? definition.uid;
  const at = `switchboard.sources.${kind}`;
  const attributes = requireType(at, uid, types);
  const own = uid === definition.uid;
  const hasCustom = definition.fields.some(({ path }) => path === 'fields');
  const given = new Map(Object.entries(option?.fields ?? {}));
  const tags = kind === 'contact' ? given.get('tags') : undefined;
  if (kind === 'contact') given.delete('tags');

  const fields = definition.fields.map((field) => {
    const from = given.get(field.path);
    given.delete(field.path);
    return from === undefined
      ? impliedField(field, attributes, own)
      : explicitField(`${at}.fields.${field.path}`, field, from, { uid, attributes });
  });
  for (const [path, from] of given) {
    if (!hasCustom || !CUSTOM.test(path)) {
      const possible = definition.fields.map((known) => known.path);
      if (hasCustom) possible.push('fields.<name>');
      if (kind === 'contact') possible.push('tags');
      throw new MappingError(
        `${at}.fields: a ${kind} has no field "${path}". Possible: ${list(possible)}.`
      );
    }
    const field: Field = { path, type: 'text' };
    fields.push(explicitField(`${at}.fields.${path}`, field, from, { uid, attributes }));
  }
  const keptTags = kind === 'contact' ? tagsOf(at, { uid, attributes }, tags) : null;
  return { kind, uid, own, fields, tags: keptTags };
};

const tagsOf = (at: string, { uid, attributes }: Type, given: FieldSource | undefined) => {
  const name = given ?? 'tags';
  const many = Object.entries(attributes).filter(
    ([, { type, relation }]) => type === 'relation' && relation?.endsWith('ToMany')
  );
  const possible = many.map(([key]) => key);
  if (typeof name === 'string' && possible.includes(name)) return name;
  if (given === undefined) return null;
  throw new MappingError(
    `${at}.fields.tags: must name a relation of ${uid} to many tags. Possible: ${list(possible)}.`
  );
};

const SYSTEM =
  /^(id|documentId|(created|updated|published|firstPublished)At|(created|updated)By|locale|localizations)$/;

/** Attributes that a visitor fills in and a receiver may see. */
export const isAnswer = (name: string, { private: hidden, type }: AttributeShape): boolean =>
  !SYSTEM.test(name) && !hidden && !['password', 'relation', 'dynamiczone'].includes(type);

/** A form of the site: the source of its entries, and its part of `form.submitted`. */
export interface Form {
  source: Source;
  uid: string;
  title: string;
  attributes: Attributes;
}

/** Fields of a contact that a form can fill, besides its custom fields. */
const FILLED = KIND_DEFINITIONS.contact.fields
  .map(({ path }) => path)
  .filter((path) => !path.startsWith('dates.') && path !== 'name' && path !== 'fields');

/** Joins a form's options to its content type. @throws MappingError */
const resolveForm = (
  index: number,
  option: SourceOption & { title: string },
  types: Types
): Form => {
  const at = `switchboard.forms.${index}`;
  const { contentType: uid, title } = option;
  const attributes = requireType(at, uid, types);
  if (option.fields.email === undefined) {
    const emails = Object.keys(attributes).filter((name) => attributes[name]?.type === 'email');
    throw new MappingError(
      `${at}.fields.email: says which attribute holds the sender's address. Possible: ${list(emails)}.`
    );
  }
  const sender = Object.entries(option.fields).map(([path, from]) => {
    if (!FILLED.includes(path) && !CUSTOM.test(path)) {
      throw new MappingError(
        `${at}.fields: a form cannot fill "${path}" of a contact. Possible: ${list([...FILLED, 'fields.<name>'])}.`
      );
    }
    const field: Field = { path: `contact.${path}`, type: 'text' };
    if (typeof from === 'function') return mapped(field, { compute: from });
    const shape = shapeOf(`${at}.fields.${path}`, from, { uid, attributes }, isAnswer);
    return mapped(field, { attribute: from, shape });
  });
  const answers = Object.entries(attributes)
    .filter(([name, shape]) => isAnswer(name, shape))
    .map(([attribute, shape]) =>
      mapped({ path: `answers.${attribute}`, type: 'text' }, { attribute, shape })
    );
  const fields = [...sender, ...answers];
  return { source: { kind: 'form', uid, own: false, fields, tags: null }, uid, title, attributes };
};

interface TypeSchema {
  attributes: Record<string, AttributeShape & { inversedBy?: string; mappedBy?: string }>;
  options?: { draftAndPublish?: boolean };
}

const typesOf = ({ strapi }: App) =>
  strapi.contentTypes as unknown as Readonly<Record<string, TypeSchema | undefined>>;

/** The tags of a contact are events only if they are of the site's tag type. */
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
const keyOf = ({ keys: [key] }: MappedField): string => key;

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
    /** Events of a new record, and of later writes of its unit of work, which must find out that it is new. */
    eventsOfNew: ['create' as const, 'update' as const].flatMap(
      (action) =>
        KIND_RULES[kind]?.possible({ action, keys: null, tags: source.tags !== null }) ?? []
    ),
    /** Set if an entry is a submitted form. */
    form,
    /** Contacts only: how their tags are read. */
    tagSource,
    draftAndPublish,
    localized,
    /** A payload key is read from a component, whose rows are written before the record's own. */
    components,
    /** It has one row and its relations, and no components or media. */
    isOneRow: !draftAndPublish && !localized && !components && !isOf('media'),
    keysByAttribute: keysByAttributeOf(source),
    /** Keys that a function computes: any write may change them. */
    computedKeys: fields.filter(({ compute }) => compute).map(keyOf),
    allKeys: ['id', ...new Set(fields.map(keyOf))],
    bookkeeping: new Set(fields.filter((field) => field.bookkeeping).map(({ path }) => path)),
    relations: relationsOf(source),
    columns: fields.flatMap(({ attribute, shape }) =>
      attribute && shape?.type !== 'relation' ? attribute : []
    ),
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
