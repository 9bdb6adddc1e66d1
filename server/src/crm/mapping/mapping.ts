import {
  type FieldDefinition,
  type FieldType,
  KIND_DEFINITIONS,
  type KindDefinition,
} from './kinds';
import { type Kind } from '../rules';

/** A row as the host's query builder returns it. */
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

export type AttributesOf = (uid: string) => Record<string, AttributeShape> | undefined;

export type FieldSource = string | ((entry: Entry) => unknown);

export interface SourceOption {
  contentType: string;
  fields: Record<string, FieldSource>;
}

/** One value of a payload and where it comes from. */
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
  /** The plugin's own content type, not one of the site's. */
  readonly own: boolean;
  readonly fields: readonly MappedField[];
  /** The relation to tags; contacts only. */
  readonly tags: string | null;
}

/** What a mapping says that the site's schema does not bear out; stops the boot. */
export class MappingError extends Error {}

const SCALARS = new Set(
  'string text richtext email uid enumeration integer biginteger float decimal boolean date time datetime timestamp json customField'.split(
    ' '
  )
);

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

const camelCase = (name: string): string =>
  name.replace(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase());

const leafOf = (path: string): string => path.split('.').at(-1) ?? path;

/** Attributes that a payload key is read from where the site's mapping does not say. */
const guesses = (field: FieldDefinition): string[] => {
  const leaf = leafOf(field.path);
  const names = [field.attribute, leaf, leaf.replace(/_id$/, '')];
  return [...new Set(names.flatMap((name) => [name, camelCase(name)]))].filter(Boolean);
};

const list = (names: Iterable<string>): string => [...names].sort().join(', ');

type Field = Pick<FieldDefinition, 'path' | 'type' | 'bookkeeping'>;

const mapped = (
  field: Field,
  attribute: string | null,
  shape: AttributeShape | null,
  compute: ((entry: Entry) => unknown) | null = null
): MappedField => ({
  path: field.path,
  type: field.type,
  bookkeeping: field.bookkeeping === true,
  attribute,
  shape,
  compute,
});

const customPath = (definition: KindDefinition, path: string): Field | undefined =>
  definition.custom && /^fields\.[^.]+$/.test(path) ? { path, type: 'text' } : undefined;

const explicitField = (
  at: string,
  field: Field,
  from: FieldSource,
  attributes: Record<string, AttributeShape>,
  uid: string
): MappedField => {
  if (typeof from === 'function') return mapped(field, null, null, from);
  const shape = attributes[from];
  if (!shape || shape.type === 'password') {
    const possible = Object.keys(attributes).filter(
      (name) => attributes[name]?.type !== 'password'
    );
    throw new MappingError(
      `${at}: ${uid} has no attribute "${from}" to read. Possible: ${list(possible)}.`
    );
  }
  if (!isReadable(shape)) {
    throw new MappingError(
      `${at}: the attribute "${from}" of ${uid} is a ${shape.type}, which no payload can carry. ` +
        `Use a function of the entry instead.`
    );
  }
  return mapped(field, from, shape);
};

const impliedField = (
  field: FieldDefinition,
  attributes: Record<string, AttributeShape>,
  own: boolean
): MappedField => {
  for (const name of own ? [field.attribute] : guesses(field)) {
    const shape = attributes[name];
    if (shape && !shape.private && suits(field.type, shape)) return mapped(field, name, shape);
  }
  return mapped(field, null, null);
};

/**
 * Joins a kind's payload keys to the attributes of the content type that holds it.
 * @throws MappingError for an unknown content type, payload key or attribute, listing the possible ones.
 */
export const resolveSource = (
  kind: Kind,
  option: SourceOption | undefined,
  attributesOf: AttributesOf,
  knownTypes: () => string[]
): Source => {
  const definition = KIND_DEFINITIONS[kind];
  const uid = option?.contentType ?? definition.uid;
  const at = `switchboard.sources.${kind}`;
  const attributes = attributesOf(uid);
  if (!attributes) {
    throw new MappingError(
      `${at}.contentType: there is no content type "${uid}". Possible: ${list(knownTypes())}.`
    );
  }
  const own = uid === definition.uid;
  const given = new Map(Object.entries(option?.fields ?? {}));
  const tags = kind === 'contact' ? given.get('tags') : undefined;
  if (kind === 'contact') given.delete('tags');

  const fields = definition.fields.map((field) => {
    const from = given.get(field.path);
    given.delete(field.path);
    return from === undefined
      ? impliedField(field, attributes, own)
      : explicitField(`${at}.fields.${field.path}`, field, from, attributes, uid);
  });
  for (const [path, from] of given) {
    const field = customPath(definition, path);
    if (!field) {
      const possible = definition.fields.map((known) => known.path);
      if (definition.custom) possible.push('fields.<name>');
      if (kind === 'contact') possible.push('tags');
      throw new MappingError(
        `${at}.fields: a ${kind} has no field "${path}". Possible: ${list(possible)}.`
      );
    }
    fields.push(explicitField(`${at}.fields.${path}`, field, from, attributes, uid));
  }
  return {
    kind,
    uid,
    own,
    fields,
    tags: kind === 'contact' ? tagsOf(at, uid, attributes, tags) : null,
  };
};

const tagsOf = (
  at: string,
  uid: string,
  attributes: Record<string, AttributeShape>,
  given: FieldSource | undefined
): string | null => {
  const name = given ?? 'tags';
  const shape = typeof name === 'string' ? attributes[name] : undefined;
  const isMany = shape?.type === 'relation' && (shape.relation ?? '').endsWith('ToMany');
  if (isMany) return String(name);
  if (given === undefined) return null;
  const possible = Object.keys(attributes).filter(
    (key) => attributes[key]?.type === 'relation' && attributes[key]?.relation?.endsWith('ToMany')
  );
  throw new MappingError(
    `${at}.fields.tags: must name a relation of ${uid} to many tags. Possible: ${list(possible)}.`
  );
};
