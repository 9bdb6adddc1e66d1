import type { Core } from '@strapi/strapi';
import type { MappedField, Source } from '../mapping/mapping';

type Values = Readonly<Record<string, unknown>>;

/** Keys that were named in the log, by site and content type: one line says each once. */
const named = new WeakMap<Core.Strapi, Map<string, Set<string>>>();

const logLeftOut = (strapi: Core.Strapi, { kind, uid }: Source, keys: readonly string[]): void => {
  const byType = named.get(strapi) ?? new Map<string, Set<string>>();
  named.set(strapi, byType);
  const seen = byType.get(uid) ?? new Set<string>();
  byType.set(uid, seen);
  const fresh = keys.filter((key) => !seen.has(key));
  if (fresh.length === 0) return;
  for (const key of fresh) seen.add(key);
  strapi.log.warn(
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
export const keptInput = <T extends Values>(strapi: Core.Strapi, source: Source, input: T): T => {
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
  if (leftOut.length > 0) logLeftOut(strapi, source, leftOut);
  return kept as T;
};
