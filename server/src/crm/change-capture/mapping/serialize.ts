import { isoTime } from '../../../runtime/iso-time';
import type { AttributeShape, Entry, MappedField, Source } from '../../mapping/mapping';
import { isRecord } from '../../../runtime/is-record';
import type { Payload, TagRef } from '../../rules/payload';

const referenceOf = (target: string | undefined, related: unknown): string | number | null => {
  if (!isRecord(related)) return null;
  if (target === 'admin::user') return typeof related.id === 'number' ? related.id : null;
  return typeof related.documentId === 'string' ? related.documentId : null;
};

/** Draft and published rows of one related document are one reference. */
const references = (target: string | undefined, related: unknown[]): (string | number)[] => [
  ...new Set(
    related.map((one) => referenceOf(target, one)).filter((reference) => reference !== null)
  ),
];

const scalar = (shape: AttributeShape, value: unknown): unknown => {
  if (shape.type === 'datetime' || shape.type === 'timestamp') {
    const time = value instanceof Date ? value : new Date(String(value));
    return Number.isNaN(time.getTime()) ? null : isoTime(time.getTime());
  }
  return value instanceof Date ? isoTime(value.getTime()) : value;
};

const mediaOf = (value: unknown): unknown =>
  Array.isArray(value) ? value.map(mediaOf) : isRecord(value) ? (value.url ?? null) : null;

/** Components were loaded with nothing but their public scalars; their row ids say nothing outside. */
const componentOf = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(componentOf);
  if (!isRecord(value)) return null;
  return Object.fromEntries(Object.entries(value).filter(([name]) => name !== 'id'));
};

const readAttribute = (shape: AttributeShape, value: unknown): unknown => {
  if (value === null || value === undefined) return null;
  if (shape.type === 'media') return mediaOf(value);
  if (shape.type === 'component') return componentOf(value);
  if (shape.type !== 'relation') return scalar(shape, value);
  return Array.isArray(value)
    ? shape.relation?.endsWith('ToMany')
      ? references(shape.target, value)
      : (references(shape.target, value)[0] ?? null)
    : referenceOf(shape.target, value);
};

const coerce = (field: MappedField, value: unknown): unknown => {
  if (value === null || value === undefined) return field.path === 'fields' ? {} : null;
  if (field.type === 'number' && typeof value !== 'number') {
    const number = Number(value);
    return Number.isFinite(number) ? number : null;
  }
  if (field.path === 'fields' && !isRecord(value)) return {};
  return value instanceof Date ? isoTime(value.getTime()) : value;
};

const valueOf = (field: MappedField, entry: Entry): unknown => {
  if (field.compute) return coerce(field, field.compute(entry));
  if (!field.attribute || !field.shape) return coerce(field, null);
  return coerce(field, readAttribute(field.shape, entry[field.attribute]));
};

const put = (payload: Payload, path: string, value: unknown): void => {
  const dot = path.indexOf('.');
  const [key, name] = dot < 0 ? [path, null] : [path.slice(0, dot), path.slice(dot + 1)];
  if (name === null) {
    payload[key] = key === 'fields' && isRecord(value) ? { ...value } : value;
    return;
  }
  const inner = isRecord(payload[key]) ? payload[key] : {};
  inner[name] = value;
  payload[key] = inner;
};

const text = (value: unknown): string => (typeof value === 'string' ? value.trim() : '');

/** A contact's `name` is made of its first and last name unless the site keeps one. */
const completeName = (kind: Source['kind'], payload: Payload): void => {
  if (kind !== 'contact' || (payload.name ?? null) !== null) return;
  payload.name =
    [text(payload.first_name), text(payload.last_name)].filter(Boolean).join(' ') || null;
};

/**
 * Builds the object from the list of mapped fields and from nothing else, so nothing private leaks.
 * @throws whatever a computed field's function throws.
 */
export const serialize = (source: Source, entry: Entry): Payload => {
  const payload: Payload = { id: String(entry.documentId) };
  for (const field of source.fields) put(payload, field.path, valueOf(field, entry));
  completeName(source.kind, payload);
  return payload;
};

/** The tags of a contact's entry, each once, made by the tag source's own mapping. */
export const tagsOf = (contact: Source, tag: Source, entry: Entry): TagRef[] => {
  const related = contact.tags ? entry[contact.tags] : null;
  if (!Array.isArray(related)) return [];
  const byId = new Map<string, TagRef>();
  for (const one of related) {
    if (!isRecord(one) || typeof one.documentId !== 'string') continue;
    const { id, slug, name } = serialize(tag, one);
    byId.set(id, { id, slug: slug ?? null, name: name ?? null });
  }
  return [...byId.values()];
};
