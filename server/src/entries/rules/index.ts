import { isDeepStrictEqual } from 'node:util';
import type { Subject } from '../../../../shared/contracts/webhooks';
import { isRecord, lineOf } from '../../runtime/text';

export type FieldShape =
  | { readonly kind: 'scalar'; readonly type: string; readonly values?: readonly string[] }
  | {
      readonly kind: 'relation';
      readonly many: boolean;
      /** To entries of several types; each then names its type. */
      readonly morph: boolean;
      /** This side keeps the order of what it relates to; the other side has none. */
      readonly ordered: boolean;
      readonly drafts: boolean;
    }
  | { readonly kind: 'media'; readonly many: boolean; readonly file: Shape }
  | { readonly kind: 'component'; readonly many: boolean; readonly shape: Shape }
  | { readonly kind: 'zone'; readonly shapes: ReadonlyMap<string, Shape> };

/** The public attributes of a content type or a component, after its ids: nothing else is in a payload. */
export interface Shape {
  readonly fields: readonly (readonly [name: string, field: FieldShape])[];
}

export type EntryStatus = 'draft' | 'published';

/** An entry or a file as receivers get it: as in REST, relations as `{ documentId }`. */
export type EntryValue = Readonly<Record<string, unknown>>;

/** One row of a document: of one language, draft or published. */
export interface Version {
  readonly row: number;
  /** null: the type has no languages. */
  readonly locale: string | null;
  /** `published` if the type has no drafts. */
  readonly status: EntryStatus;
  readonly entry: EntryValue;
}

/** Kept by the host: they follow a change and are none. */
const BOOKKEEPING = 'createdAt updatedAt publishedAt firstPublishedAt locale'.split(' ');

const each = (value: unknown, one: (part: EntryValue) => unknown): unknown => {
  if (Array.isArray(value)) return value.map((part) => one(part as EntryValue));
  return isRecord(value) ? one(value) : null;
};

const keyOf = (reference: EntryValue): string =>
  `${typeof reference.__type === 'string' ? reference.__type : ''}:${String(reference.documentId)}`;

/** Without the ids of rows: each publish writes components again. A file is the same file by its id. */
const comparable = (field: FieldShape, value: unknown): unknown => {
  switch (field.kind) {
    case 'scalar':
      return value;
    case 'media':
      return each(value, ({ id }) => id);
    case 'relation': {
      const keys = each(value, keyOf);
      return Array.isArray(keys) && !field.ordered ? keys.sort() : keys;
    }
    case 'component':
      return each(value, (part) => comparablePart(field.shape, part));
    case 'zone':
      return each(value, (part) => {
        const uid = String(part.__component);
        const shape = field.shapes.get(uid);
        return [uid, shape ? comparablePart(shape, part) : null];
      });
  }
};

const comparablePart = ({ fields }: Shape, part: EntryValue): unknown[] =>
  fields.map(([name, field]) => comparable(field, part[name] ?? null));

const isEmpty = (value: unknown): boolean =>
  value === null || value === undefined || (Array.isArray(value) && value.length === 0);

/** The attributes whose value differs from before, or from none. docs/any-content-type.md#changed */
export const changedFields = ({ fields }: Shape, before: EntryValue | null, after: EntryValue) =>
  fields
    .filter(([name, field]) => {
      if (BOOKKEEPING.includes(name)) return false;
      if (before === null) return !isEmpty(after[name]);
      const old = comparable(field, before[name] ?? null);
      return !isDeepStrictEqual(old, comparable(field, after[name] ?? null));
    })
    .map(([name]) => name);

interface EntryChange {
  readonly action: 'created' | 'updated' | 'published' | 'unpublished' | 'deleted';
  /** As it is now; of what was deleted or unpublished, as it was last. */
  readonly version: Version;
  readonly changed?: readonly string[];
}

export interface DocumentChange {
  readonly shape: Shape;
  readonly draftAndPublish: boolean;
  readonly before: readonly Version[];
  readonly after: readonly Version[];
  /** The languages of which a draft is there afterwards. */
  readonly drafts: ReadonlySet<string | null>;
  /** Its content was written again, whether it differs or not: a file was replaced. */
  readonly rewritten?: boolean;
}

type Pair = Partial<Record<'before' | 'after', Version>>;

type Group = Pair & { draft: Pair };

const byLocale = ({ before, after }: DocumentChange): Map<string | null, Group> => {
  const groups = new Map<string | null, Group>();
  const put = (when: keyof Pair, version: Version): void => {
    const group = groups.get(version.locale) ?? { draft: {} };
    (version.status === 'draft' ? group.draft : group)[when] = version;
    groups.set(version.locale, group);
  };
  for (const version of before) put('before', version);
  for (const version of after) put('after', version);
  return groups;
};

/** The change of a version that is written in place: an entry without drafts, or a draft. */
const ofPlain = ({ shape, rewritten }: DocumentChange, { before, after }: Pair): EntryChange[] => {
  if (!after) return before ? [{ action: 'deleted', version: before }] : [];
  if (!before) return [{ action: 'created', version: after }];
  const changed = changedFields(shape, before.entry, after.entry);
  return changed.length > 0 || rewritten ? [{ action: 'updated', version: after, changed }] : [];
};

/** Each publish writes a new row, so another row than before was published, the same one edited. */
const ofPublished = (change: DocumentChange, { before, after }: Pair): EntryChange[] => {
  if (!after) {
    if (!before) return [];
    const action = change.drafts.has(before.locale) ? 'unpublished' : 'deleted';
    return [{ action, version: before }];
  }
  if (before?.row === after.row) return ofPlain(change, { before, after });
  const changed = changedFields(change.shape, before?.entry ?? null, after.entry);
  return [{ action: 'published', version: after, changed }];
};

/** Changes of a document by locale: drafts, then published; one deletion each. docs/any-content-type.md#events */
export const derive = (change: DocumentChange): EntryChange[] =>
  [...byLocale(change).values()].flatMap((group) => {
    if (!change.draftAndPublish) return ofPlain(change, group);
    const published = ofPublished(change, group);
    const isDeleted = published.some(({ action }) => action === 'deleted');
    const drafts = isDeleted && !group.draft.after ? [] : ofPlain(change, group.draft);
    return [...drafts, ...published];
  });

export const ENTRY_EVENTS = [
  'entry.created',
  'entry.updated',
  'entry.published',
  'entry.unpublished',
  'entry.deleted',
] as const;

export const MEDIA_EVENTS = ['media.created', 'media.updated', 'media.deleted'] as const;

export type ContentTypeUid = `${string}::${string}`;

export const FILE = 'plugin::upload.file' satisfies ContentTypeUid;

const LABEL_MAX = 200;
const TEXTS = new Set(['string', 'text', 'email', 'uid']);

/** The label for people: its name or title, else the first of its short texts, else its id. */
const labelOf = ({ fields }: Shape, entry: EntryValue): string => {
  const texts = fields.flatMap(([name, field]) =>
    field.kind === 'scalar' && TEXTS.has(field.type) && name !== 'locale' ? [name] : []
  );
  const names = [...['name', 'title'].filter((name) => texts.includes(name)), ...texts];
  const label = names.map((name) => lineOf(entry[name], LABEL_MAX)).find((text) => text !== '');
  return label ?? String(entry.documentId);
};

/** The event of a change: its name, its `data` and the record that it is about. */
export const eventOf = (
  uid: ContentTypeUid,
  shape: Shape,
  { action, version, changed }: EntryChange
): { event: string; data: unknown; subject: Subject } => {
  const { locale, status, entry } = version;
  const subject = { type: uid, id: String(entry.documentId), label: labelOf(shape, entry) };
  const rest = changed === undefined ? {} : { changed };
  if (uid === FILE) return { event: `media.${action}`, data: { media: entry, ...rest }, subject };
  const data = { content_type: uid, locale, status, entry, ...rest };
  return { event: `entry.${action}`, data, subject };
};

type Row = Readonly<Record<string, unknown>>;
type Relation = Extract<FieldShape, { kind: 'relation' }>;

const listOf = (value: unknown): Row[] =>
  (Array.isArray(value) ? value : [value]).filter((one) => isRecord(one));

/** Rows of one document (a draft and a published one, several languages) are one reference. */
const references = (field: Relation, value: unknown, status: EntryStatus): EntryValue[] => {
  const found = new Map<string, EntryValue>();
  for (const row of listOf(value)) {
    const { documentId, publishedAt, __type: type } = row;
    if (typeof documentId !== 'string') continue;
    // A published entry shows no draft of a related one.
    if (field.drafts && status === 'published' && publishedAt === null) continue;
    const reference = field.morph ? { __type: type, documentId } : { documentId };
    found.set(`${field.morph ? String(type) : ''}:${documentId}`, reference);
  }
  return [...found.values()];
};

const valueOf = (field: FieldShape, value: unknown, status: EntryStatus): unknown => {
  if (field.kind === 'scalar') return value instanceof Date ? value.toISOString() : (value ?? null);
  if (field.kind === 'zone') {
    return listOf(value).flatMap((row) => {
      const uid = String(row.__component);
      const shape = field.shapes.get(uid);
      return shape ? [{ __component: uid, ...serializePart(shape, row, status) }] : [];
    });
  }
  const values =
    field.kind === 'relation'
      ? references(field, value, status)
      : listOf(value).map((row) =>
          field.kind === 'media'
            ? serialize(field.file, row, status)
            : serializePart(field.shape, row, status)
        );
  return field.many ? values : (values[0] ?? null);
};

const fieldsOf = ({ fields }: Shape, row: Row, status: EntryStatus): Record<string, unknown> =>
  Object.fromEntries(fields.map(([name, field]) => [name, valueOf(field, row[name], status)]));

/** A component has an id and no document. */
const serializePart = (shape: Shape, row: Row, status: EntryStatus): EntryValue => ({
  id: row.id,
  ...fieldsOf(shape, row, status),
});

/** A row as full-access REST shows it, mapped attributes only. docs/any-content-type.md#the-request-a-receiver-gets */
export const serialize = (shape: Shape, row: Row, status: EntryStatus): EntryValue => ({
  id: row.id,
  documentId: row.documentId,
  ...fieldsOf(shape, row, status),
});
