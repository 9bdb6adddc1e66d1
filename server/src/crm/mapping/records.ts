import { defaultLocale, type Where } from '../../database/written-rows';
import { readNewest } from '../../database/transactions';
import { isoTime, isRecord, withOffset } from '../../runtime/text';
import type { Payload, TagRef } from '../rules';
import type { AttributeShape, Entry, MappedField, Source, WatchedSource } from './sources';
import type { App } from '../../app';

export interface Reading {
  /** Relations to read with all their fields. */
  whole?: object;
  /** Payload keys; null: all. */
  keys: ReadonlySet<string> | null;
  tags: boolean;
}

const NO_SCALARS = ['password', 'relation', 'media', 'component', 'dynamiczone'];

/** Public scalars of a component: no relation, password or private attribute can get any further. */
const componentFields = (app: App, uid: string): string[] => {
  const components = app.strapi.components as unknown as Readonly<
    Record<string, { attributes: Record<string, AttributeShape> } | undefined>
  >;
  return Object.entries(components[uid]?.attributes ?? {})
    .filter(([, shape]) => !shape.private && !NO_SCALARS.includes(shape.type))
    .map(([name]) => name);
};

const populateFor = (app: App, watched: WatchedSource, reading: Reading): Where => {
  const populate: Where = {};
  for (const { keys, attribute, shape } of watched.source.fields) {
    if (!attribute || !shape) continue;
    if (reading.keys && !reading.keys.has(keys[0])) continue;
    if (shape.type === 'relation') {
      const select = shape.target === 'admin::user' ? ['id'] : ['id', 'documentId'];
      populate[attribute] = { select };
    } else if (shape.type === 'component') {
      populate[attribute] = { select: ['id', ...componentFields(app, shape.component ?? '')] };
    } else if (shape.type === 'media') {
      populate[attribute] = { select: ['url'] };
    }
  }
  const { tags } = watched.source;
  if (reading.tags && tags) {
    const attributes = watched.tagSource.fields.flatMap(({ attribute }) => attribute ?? []);
    populate[tags] = { select: ['id', 'documentId', ...attributes] };
  }
  return populate;
};

/** The row that counts of a document: the published one, in the site's default language. */
export const countedWhere = async (app: App, watched: WatchedSource): Promise<Where> => ({
  ...(watched.draftAndPublish && { publishedAt: { $notNull: true } }),
  ...(watched.localized && { locale: await defaultLocale(app.strapi) }),
});

/** The condition for records in the bin, or for all others; none if a type has no bin. */
export const binWhere = (watched: WatchedSource, inBin: boolean): Where[] => {
  const field = watched.source.fields.find(({ path }) => path === 'dates.trashed_at');
  return field?.attribute ? [{ [field.attribute]: { [inBin ? '$notNull' : '$null']: true } }] : [];
};

/** Reads rows without the host's lifecycles, which may change or refuse them; `lock` locks them in the transaction. */
export const readRows = async (
  app: App,
  watched: WatchedSource,
  where: Where,
  reading: Reading,
  {
    lock,
    ...page
  }: { orderBy?: Where; limit?: number; offset?: number; lock?: boolean; _q?: string } = {}
): Promise<Entry[]> => {
  const populate = { ...populateFor(app, watched, reading), ...reading.whole };
  const counted = await countedWhere(app, watched);
  const query = app.strapi.db.queryBuilder(watched.uid).init({
    ...page,
    where: Object.keys(counted).length > 0 ? { $and: [where, counted] } : where,
    ...(Object.keys(populate).length > 0 && { populate }),
  });
  if (lock) query.forUpdate();
  return (await readNewest(app.strapi, () => query.execute())) as Entry[];
};

/** Reads rows as they are stored. @param lock until the transaction ends */
export const selectRows = async <Row>(
  { strapi }: App,
  uid: string,
  params: { select: string[]; where: Where; orderBy?: Where; limit?: number },
  lock = false
): Promise<Row[]> => {
  const query = strapi.db.queryBuilder(uid).init(params);
  if (lock) query.forUpdate();
  return (await query.execute()) as Row[];
};

/** Locks rows until the transaction ends, in the order of their ids. */
export const lockRows = (app: App, uid: string, where: Where): Promise<unknown> =>
  selectRows(app, uid, { select: ['id'], where, orderBy: { id: 'asc' } }, true);

const referenceOf = (target: string | undefined, related: unknown): string | number | null => {
  if (!isRecord(related)) return null;
  if (target === 'admin::user') return typeof related.id === 'number' ? related.id : null;
  return typeof related.documentId === 'string' ? related.documentId : null;
};

const mediaOf = (value: unknown): unknown =>
  Array.isArray(value) ? value.map(mediaOf) : isRecord(value) ? (value.url ?? null) : null;

/** Components were loaded with nothing but their public scalars; their row ids say nothing outside. */
const componentOf = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(componentOf);
  if (!isRecord(value)) return null;
  return Object.fromEntries(Object.entries(value).filter(([name]) => name !== 'id'));
};

const relationOf = ({ target, relation }: AttributeShape, value: unknown): unknown => {
  if (!Array.isArray(value)) return referenceOf(target, value);
  // Draft and published rows of one related document are one reference.
  const found = new Set(value.map((one) => referenceOf(target, one)));
  found.delete(null);
  return relation?.endsWith('ToMany') ? [...found] : ([...found][0] ?? null);
};

const WRITTEN_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const readAttribute = (shape: AttributeShape, value: unknown): unknown => {
  switch (shape.type) {
    case 'media':
      return mediaOf(value);
    case 'component':
      return componentOf(value);
    case 'relation':
      return relationOf(shape, value);
    case 'datetime':
    case 'timestamp': {
      if (typeof value === 'string' && WRITTEN_TIME.test(value)) return withOffset(value);
      const time = (value instanceof Date ? value : new Date(String(value))).getTime();
      return Number.isNaN(time) ? null : isoTime(time);
    }
    default:
      return value;
  }
};

const valueOf = ({ path, type, attribute, shape, compute }: MappedField, entry: Entry): unknown => {
  const kept = attribute && shape ? (entry[attribute] ?? null) : null;
  const value = compute
    ? compute(entry)
    : shape && kept !== null
      ? readAttribute(shape, kept)
      : null;
  if (path === 'fields') return isRecord(value) ? { ...value } : {};
  if (value === null || value === undefined) return null;
  if (type === 'number' && typeof value !== 'number') {
    return Number.isFinite(Number(value)) ? Number(value) : null;
  }
  return value instanceof Date ? isoTime(value.getTime()) : value;
};

/** Serializes only the mapped fields, so private ones cannot leak. Errors of computed fields propagate. */
export const serialize = (source: Source, entry: Entry): Payload => {
  const payload: Payload = { id: String(entry.documentId) };
  for (const field of source.fields) {
    const [key, inner] = field.keys;
    const value = valueOf(field, entry);
    if (inner === undefined) payload[key] = value;
    else ((payload[key] ??= {}) as Record<string, unknown>)[inner] = value;
  }
  // A contact's `name` is made of its first and last name unless the site keeps one.
  if (source.kind === 'contact' && (payload.name ?? null) === null) {
    const names = [payload.first_name, payload.last_name].map((one) =>
      typeof one === 'string' ? one.trim() : ''
    );
    payload.name = names.filter(Boolean).join(' ') || null;
  }
  return payload;
};

/** The tags of a contact's entry, without duplicates, by the tag source's own mapping. */
export const tagsOf = ({ source, tagSource }: WatchedSource, entry: Entry): TagRef[] => {
  const related = source.tags ? entry[source.tags] : null;
  if (!Array.isArray(related)) return [];
  const byId = new Map<string, TagRef>();
  for (const one of related) {
    if (!isRecord(one) || typeof one.documentId !== 'string') continue;
    const { id, slug, name } = serialize(tagSource, one);
    byId.set(id, { id, slug: slug ?? null, name: name ?? null });
  }
  return [...byId.values()];
};
