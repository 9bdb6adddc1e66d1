import { fieldErrors } from '../../http/validation';
import type { MappedField, Source, WatchedSource } from '../mapping/sources';
import { selectRows } from '../mapping/records';
import type { App } from '../../app';

type Data = Record<string, unknown>;

/** Keys of an input that stand elsewhere in the object. */
const PATHS: Readonly<Record<string, string>> = { trashed_at: 'dates.trashed_at' };
const IGNORED = new Set(['id', 'dates']);

/** The values of an object as REST takes it; those of `fields` each by its `name`, unless it is kept whole. */
function* valuesOf({ fields }: Source, input: Readonly<Data>) {
  const byPath = new Map(fields.map((field) => [field.path, field]));
  for (const [key, value] of Object.entries(input)) {
    if (key !== 'fields' || byPath.get(key)?.attribute) {
      yield { key, name: null, path: key, value, field: byPath.get(PATHS[key] ?? key) };
      continue;
    }
    for (const [name, one] of Object.entries((value as Data | null) ?? {})) {
      const path = `fields.${name}`;
      yield { key, name, path, value: one, field: byPath.get(path) };
    }
  }
}

/** @returns what is wrong with these ids; null if each names a record. */
const missingOf = async (app: App, target: string, ids: readonly unknown[]) => {
  const column = target === 'admin::user' ? 'id' : 'documentId';
  const where = { [column]: { $in: ids } };
  const rows = await selectRows<Data>(app, target, { select: ['id', 'documentId'], where });
  const found = new Set(rows.map((row) => row[column]));
  const missing = ids.find((id) => !found.has(id));
  return missing === undefined ? null : `there is no record with the id ${missing}`;
};

/** Writes a value into the data. @returns what is wrong with it, or null. */
const assign = async (app: App, data: Data, field: MappedField | undefined, value: unknown) => {
  if (!field?.attribute) return 'is not kept on this site, or is computed';
  const target = field.shape?.type === 'relation' ? field.shape.target : undefined;
  if (!target || value === null) {
    data[field.attribute] = value;
    return null;
  }
  data[field.attribute] = target === 'admin::user' ? { id: value } : value;
  return missingOf(app, target, [value]);
};

/** Maps REST input to attributes; throws ValidationError (400) naming keys it cannot write and missing records. */
export const toData = async (
  app: App,
  { source, tagSource }: WatchedSource,
  input: Readonly<Data>
): Promise<Data> => {
  const data: Data = {};
  const wrong: { path: string; message: string }[] = [];
  const note = (path: string, message: string | null): void => {
    if (message !== null) wrong.push({ path, message });
  };
  const isContact = source.kind === 'contact';
  for (const { key, path, value, field } of valuesOf(source, input)) {
    if (value === undefined || IGNORED.has(key) || (isContact && key === 'name')) continue;
    if (!isContact || key !== 'tags') note(path, await assign(app, data, field, value));
    else if (!source.tags) note('tags', 'are not kept on this site');
    else {
      if (Array.isArray(value))
        note('tags', await missingOf(app, tagSource.uid, [...new Set(value)]));
      data[source.tags] = value;
    }
  }
  if (wrong.length > 0) throw fieldErrors(wrong);
  return data;
};

/** Keys that were named in the log, by site and content type: one line says each once. */
const named = (): Set<string> => new Set();

const logLeftOut = (app: App, { kind, uid }: Source, keys: readonly string[]): void => {
  const seen = app.part(named);
  const fresh = keys.filter((key) => !seen.has(`${uid} ${key}`));
  if (fresh.length === 0) return;
  for (const key of fresh) seen.add(`${uid} ${key}`);
  app.log.warn(
    `switchboard: ${uid} keeps no ${fresh.join(', ')} of a ${kind}: forms, imports, tills and e-mail leave it out`
  );
};

/** The key of a contact, and the value that its others make up. */
const ALWAYS: ReadonlySet<string> = new Set(['email', 'name']);

/** True if an attribute can hold a value: an enumeration of the site's own only lists some. */
const holds = (field: MappedField | undefined, value: unknown): boolean => {
  if (!field?.attribute) return false;
  const options = (field.shape as { enum?: readonly unknown[] } | null)?.enum;
  if (field.shape?.type !== 'enumeration' || !options) return true;
  return (value ?? null) === null || options.includes(value);
};

/**
 * Drops input keys that the content type does not store, and logs them once. For forms, files, tills and mail
 * providers, which must not lose a record over a key; REST refuses such a key. Keeps a contact's `email`: its key.
 */
export const keptInput = <T extends Readonly<Data>>(app: App, source: Source, input: T): T => {
  const isContact = source.kind === 'contact';
  const kept: Data = {};
  const leftOut: string[] = [];
  for (const { key, name, path, value, field } of valuesOf(source, input)) {
    const isAlways = isContact && (ALWAYS.has(key) || (key === 'tags' && source.tags !== null));
    if (isAlways || holds(field, value)) {
      if (name === null) kept[key] = value;
      else kept[key] = { ...(kept[key] as Data | undefined), [name]: value };
    } else if (value !== null && value !== undefined) leftOut.push(path);
  }
  if (leftOut.length > 0) logLeftOut(app, source, leftOut);
  return kept as T;
};
