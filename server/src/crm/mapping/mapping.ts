import { type FieldDefinition, type FieldType, KIND_DEFINITIONS } from './kinds';
import { type Kind } from '../rules';

export type Entry = Record<string, unknown>;

/** The parts of a content type's attribute that a mapping looks at. */
export interface AttributeShape {
  type: string;
  private?: boolean;
  relation?: string;
  target?: string;
  component?: string;
  repeatable?: boolean;
}

type FieldSource = string | ((entry: Entry) => unknown);

interface SourceOption {
  contentType: string;
  fields: Record<string, FieldSource>;
}

export interface MappedField {
  readonly path: string;
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
export class MappingError extends Error {}

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

/** Attributes that a payload key is read from where the site's mapping does not say. */
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

/** The site's content types, by their uids. */
type Types = Readonly<Record<string, Pick<Type, 'attributes'> | undefined>>;

const mapped = (
  { path, type, bookkeeping }: Field,
  from: Partial<Pick<MappedField, 'attribute' | 'shape' | 'compute'>> = {}
): MappedField => ({
  path,
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
export const resolveSource = (
  kind: Kind,
  option: SourceOption | undefined,
  types: Types
): Source => {
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

/** A form of the site: the source of its entries and what `form.submitted` says of it. */
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
export const resolveForm = (
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
