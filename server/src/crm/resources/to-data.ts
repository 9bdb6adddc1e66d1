import { fieldErrors } from '../../http/validation';
import type { MappedField, Source } from '../mapping/mapping';
import type { App } from '../../app';

type Data = Record<string, unknown>;

/** Keys of an input that stand elsewhere in the object. */
const PATHS: Readonly<Record<string, string>> = { trashed_at: 'dates.trashed_at' };
const IGNORED = new Set(['id', 'dates']);

/** @returns what is wrong with these ids; null where each names a record. */
const missingOf = async (
  app: App,
  target: string,
  ids: readonly unknown[]
): Promise<string | null> => {
  const column = target === 'admin::user' ? 'id' : 'documentId';
  const rows = (await app.strapi.db
    .queryBuilder(target)
    .init({ select: ['id', 'documentId'], where: { [column]: { $in: ids } } })
    .execute()) as Data[];
  const found = new Set(rows.map((row) => row[column]));
  const missing = ids.find((id) => !found.has(id));
  return missing === undefined ? null : `there is no record with the id ${missing}`;
};

/** Writes a value into the data. @returns what is wrong with it, or null. */
const assign = async (
  app: App,
  data: Data,
  field: MappedField | undefined,
  value: unknown
): Promise<string | null> => {
  if (!field?.attribute) return 'is not kept on this site, or is computed';
  const target = field.shape?.type === 'relation' ? field.shape.target : undefined;
  if (!target || value === null) {
    data[field.attribute] = value;
    return null;
  }
  data[field.attribute] = target === 'admin::user' ? { id: value } : value;
  return missingOf(app, target, [value]);
};

/**
 * Turns an object as REST takes it into the attributes of the content type that holds it.
 * @throws ValidationError (400) naming the keys that this site cannot write, or whose record is missing.
 */
export const toData = async (
  app: App,
  source: Source,
  tagUid: string,
  input: Readonly<Data>
): Promise<Data> => {
  const data: Data = {};
  const wrong: { path: string; message: string }[] = [];
  const note = (path: string, message: string | null): void => {
    if (message !== null) wrong.push({ path, message });
  };
  const byPath = new Map(source.fields.map((field) => [field.path, field]));
  for (const [key, value] of Object.entries(input)) {
    if (value === undefined || IGNORED.has(key)) continue;
    if (key === 'name' && source.kind === 'contact') continue;
    if (key === 'tags' && source.kind === 'contact') {
      if (!source.tags) {
        note('tags', 'are not kept on this site');
        continue;
      }
      if (Array.isArray(value)) note('tags', await missingOf(app, tagUid, [...new Set(value)]));
      data[source.tags] = value;
    } else if (key === 'fields' && !byPath.get('fields')?.attribute) {
      for (const [name, one] of Object.entries((value as Data | null) ?? {})) {
        const path = `fields.${name}`;
        note(path, await assign(app, data, byPath.get(path), one));
      }
    } else {
      note(key, await assign(app, data, byPath.get(PATHS[key] ?? key), value));
    }
  }
  if (wrong.length > 0) throw fieldErrors(wrong);
  return data;
};

type Values = Readonly<Record<string, unknown>>;

/** Keys that were named in the log, by site and content type: one line says each once. */
const named = (): Map<string, Set<string>> => new Map();

const logLeftOut = (app: App, { kind, uid }: Source, keys: readonly string[]): void => {
  const byType = app.part(named);
  const seen = byType.get(uid) ?? new Set<string>();
  byType.set(uid, seen);
  const fresh = keys.filter((key) => !seen.has(key));
  if (fresh.length === 0) return;
  for (const key of fresh) seen.add(key);
  app.log.warn(
    `switchboard: ${uid} keeps no ${fresh.join(', ')} of a ${kind}: forms, imports, tills and ` +
      `e-mail leave it out`
  );
};

/** What a contact is found by, and what its other values make up. */
const ALWAYS: ReadonlySet<string> = new Set(['email', 'name']);

/** Whether an attribute can hold a value: of an enumeration of the site's own only what it lists. */
const holds = (field: MappedField | undefined, value: unknown): boolean => {
  if (!field?.attribute) return false;
  const options = (field.shape as { enum?: readonly unknown[] } | null)?.enum;
  if (field.shape?.type !== 'enumeration' || !options) return true;
  return value === null || value === undefined || options.includes(value);
};

/**
 * Leaves out of an object, as REST takes it, what the content type that holds it does not keep. For
 * values that come from elsewhere (a form, a file, a till, a mail provider), of which no key may cost
 * the record; REST's own routes refuse such a key instead. One log line names what is left out.
 *
 * The address of a contact stays: it is what the contact is found by.
 */
export const keptInput = <T extends Values>(app: App, source: Source, input: T): T => {
  const byPath = new Map(source.fields.map((field) => [field.path, field]));
  const kept: Record<string, unknown> = {};
  const leftOut: string[] = [];
  const take = (into: Record<string, unknown>, key: string, path: string, value: unknown): void => {
    if (holds(byPath.get(path), value)) into[key] = value;
    else if (value !== null && value !== undefined) leftOut.push(path);
  };
  for (const [key, value] of Object.entries(input)) {
    const isContact = source.kind === 'contact';
    if (isContact && ALWAYS.has(key)) kept[key] = value;
    else if (isContact && key === 'tags' && source.tags) kept[key] = value;
    else if (key === 'fields' && !byPath.get('fields')?.attribute) {
      const bag: Record<string, unknown> = {};
      for (const [name, one] of Object.entries((value as Values | null) ?? {})) {
        take(bag, name, `fields.${name}`, one);
      }
      if (Object.keys(bag).length > 0) kept.fields = bag;
    } else take(kept, key, key, value);
  }
  if (leftOut.length > 0) logLeftOut(app, source, leftOut);
  return kept as T;
};
