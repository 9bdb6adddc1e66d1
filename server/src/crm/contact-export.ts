import { Readable } from 'node:stream';
import type { UID } from '@strapi/strapi';
import { errors, validate, z } from '@strapi/utils';
import {
  CONTACT_BAGS,
  CONTACT_NUMBER_COLUMNS,
  CONTACT_READ_ONLY_COLUMNS,
  CONTACT_TEXT_COLUMNS,
} from '../../../shared/contracts/imports';
import {
  type ContentPermissions,
  contentPermissions,
  judgedRelations,
} from '../access/current-admin-user';
import type { Where } from '../database/written-rows';
import { endpoint, type Endpoints } from '../http/endpoint';
import { giveWay } from '../imports/file-import';
import { csvLine, errorText, isRecord, noFormula } from '../runtime/text';
import { findTag } from './import/import-batch';
import { readRows, serialize, tagsOf } from './mapping/records';
import { type Entry, getInspected, type WatchedSource } from './mapping/sources';
import type { TagRef } from './rules';
import type { App } from '../app';

const COLUMNS = [
  ...CONTACT_TEXT_COLUMNS,
  ...CONTACT_NUMBER_COLUMNS,
  'tags',
  ...CONTACT_BAGS,
  ...CONTACT_READ_ONLY_COLUMNS,
];
/** The rest of an import's limit of 200 columns, for single custom fields and parts of addresses. */
const MAX_NAMES = 150;
const PAGE = 500;

/** A heading that an import reads as it is, whatever separates the columns. */
const PLAIN_NAME = /^[\p{L}\p{N}_]([\p{L}\p{N}_ .-]{0,98}[\p{L}\p{N}_])?$/u;

/** A text that an import reads as it is: it takes spaces off, and leaves empty cells out. */
const isPlain = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.trim() === value;

type Found = { where?: Where; _q?: string; whole: object };

/** Contacts some at a time, without what the user may not read. */
async function* pagesOf(app: App, watched: WatchedSource, may: ContentPermissions, found: Found) {
  const { where = {}, whole, ...search } = found;
  for (let last = 0; ;) {
    const page = { ...search, orderBy: { id: 'asc' }, limit: PAGE };
    const after = { $and: [where, { id: { $gt: last } }] };
    const rows = await readRows(app, watched, after, { keys: null, tags: true, whole }, page);
    yield await Promise.all(rows.map((row) => may.sanitizeOutput(row)));
    if (rows.length < PAGE) return;
    last = Number(rows.at(-1)?.id);
    await giveWay();
  }
}

/** Names tags so that an import finds them: by name, or by slug if it would split the name or find another tag. */
const tagTexts = (app: App) => {
  const known = new Map<string, unknown>();
  return async (tags: TagRef[]): Promise<string> => {
    for (const { id, name, slug } of tags) {
      if (known.has(id)) continue;
      const isWhole = isPlain(name) && !/[;,|]/.test(name);
      known.set(id, isWhole && (await findTag(app, name)) === id ? name : slug);
    }
    return tags.map(({ id }) => known.get(id) ?? '').join(';');
  };
};

/** A contact by column: the texts of a bag that have a column of their own, and the rest of it as JSON. */
const rowOf = (watched: WatchedSource, entry: Entry, hasColumn: (name: string) => boolean) => {
  const contact = serialize(watched.source, entry);
  const row: Record<string, unknown> = { ...(contact.dates as object), ...contact };
  for (const bag of CONTACT_BAGS) {
    const values: unknown = contact[bag] ?? {};
    const parts = isRecord(values) ? Object.entries(values) : [];
    const rest = parts.filter(([name, value]) => {
      const column = `${bag}.${name}`;
      const isOwn = PLAIN_NAME.test(name) && isPlain(value) && hasColumn(column);
      if (isOwn) row[column] = value;
      return !isOwn;
    });
    if (isRecord(values))
      row[bag] = rest.length > 0 ? JSON.stringify(Object.fromEntries(rest)) : '';
    else row[bag] = JSON.stringify(values);
  }
  return row;
};

const cellOf = (value: unknown): string | number =>
  typeof value === 'number' ? value : noFormula(String(value ?? ''));

/** `filters` and `_q` as lists of the content manager take them; `ids` with commas between them. */
const exportQuery = z.object({
  filters: z.record(z.string(), z.unknown()).default({}),
  _q: z.string().max(255).optional(),
  ids: z.string().max(10_000).optional(),
});

/** A file that an import reads back; docs/contacts.md#export-contacts. */
export const contactExports: Endpoints = {
  'contact-exports': {
    find: endpoint(
      'GET /contacts/export',
      { query: exportQuery, whole: true },
      async ({ app, ctx, query }) => {
        const watched = getInspected(app, 'contact');
        const may = contentPermissions(app, ctx, watched.uid);
        if (may.cannot.read()) throw new errors.ForbiddenError();
        const { ids, filters, _q } = query();
        const getModel = (uid: string) => app.strapi.getModel(uid as never);
        // The host ignores a filter that it does not know, and would give everything.
        const types = { schema: getModel(watched.uid), getModel };
        await validate.validators.validateFilters(types, filters, ['nonAttributesOperators']);
        const chosen = ids === undefined ? {} : { documentId: { $in: ids.split(',') } };
        const allowed = await may.sanitizedQuery.read({ _q, filters: { $and: [filters, chosen] } });
        // Refuses what is no date, as the host's lists do.
        await app.strapi.documents(watched.uid as UID.ContentType).findFirst({
          filters: allowed.filters as never,
          fields: ['documentId'] as never,
        });
        const wanted = app.strapi.get('query-params').transform(watched.uid, allowed);
        const whole = await judgedRelations(app, ctx, watched.uid, ['read']);
        const found = { ...(wanted as object), whole };
        const pages = () => pagesOf(app, watched, may, found);
        const names = new Set<string>();
        const used = new Set(['email']);
        for await (const page of pages()) {
          for (const entry of page) {
            const isNew = (name: string) => names.size < MAX_NAMES && Boolean(names.add(name));
            for (const [name, value] of Object.entries(rowOf(watched, entry, isNew))) {
              if ((value ?? '') !== '') used.add(name);
            }
            if (tagsOf(watched, entry).length > 0) used.add('tags');
          }
        }
        const header = [...COLUMNS.filter((name) => used.has(name)), ...names];
        const tagsText = tagTexts(app);
        const lines = async function* () {
          yield `\uFEFF${csvLine(header)}`;
          try {
            for await (const page of pages()) {
              let text = '';
              for (const entry of page) {
                const row = rowOf(watched, entry, (name) => names.has(name));
                row.tags = await tagsText(tagsOf(watched, entry));
                text += csvLine(header.map((name) => cellOf(row[name])));
              }
              yield text;
            }
          } catch (error) {
            // The file is cut off. The host logs the error: without a statement and its values.
            throw new Error(errorText(error));
          }
        };
        ctx.type = 'text/csv; charset=utf-8';
        ctx.set('Cache-Control', 'no-store');
        ctx.set('Content-Disposition', 'attachment; filename="contacts.csv"');
        return Readable.from(lines());
      }
    ),
  },
};
