import type { Core, UID } from '@strapi/strapi';
import { readNewest } from './transactions';

export type Where = Record<string, unknown>;

/** How many rows a bulk write is read, compared and published at a time. */
const CHUNK = 200;

/** What is handled together of a long list: memory and statements do not grow with a bulk write. */
export const inChunks = <T>(all: readonly T[]): T[][] => {
  const chunks: T[][] = [];
  for (let start = 0; start < all.length; start += CHUNK) {
    chunks.push(all.slice(start, start + CHUNK));
  }
  return chunks;
};

/**
 * The documents that a condition matches as it is now, in chunks: memory does not grow with a bulk write.
 * For those that are about to be written; see `readNewest`.
 */
export async function* documentIdsOf(
  strapi: Core.Strapi,
  uid: string,
  params: { where?: unknown; filters?: unknown; _q?: unknown }
): AsyncGenerator<string[]> {
  let last = 0;
  for (;;) {
    const after = { id: { $gt: last } };
    const query = strapi.db.queryBuilder(uid).init({
      ...params,
      select: ['id', 'documentId'],
      where: params.where ? { $and: [params.where, after] } : after,
      orderBy: { id: 'asc' },
      limit: CHUNK,
    });
    const rows = (await readNewest(strapi, () => query.execute())) as {
      id: number;
      documentId: string;
    }[];
    const tail = rows.at(-1);
    if (!tail) return;
    yield [...new Set(rows.map(({ documentId }) => documentId))];
    if (rows.length < CHUNK) return;
    last = Number(tail.id);
  }
}

/** A new row gets its document id here, so that it is known without asking (MySQL tells none). */
export const giveDocumentId = (
  strapi: Core.Strapi,
  uid: string,
  data: Record<string, unknown>
): string => {
  const attribute = strapi.db.metadata.get(uid).attributes.documentId as { default?: () => string };
  const id = attribute.default?.() ?? '';
  data.documentId = id;
  return id;
};

/** Whether a document of a type has a row for each of its languages. */
export const isLocalized = (strapi: Core.Strapi, uid: string): boolean => {
  const { pluginOptions } = strapi.contentTypes[uid as UID.ContentType] as {
    pluginOptions?: { i18n?: { localized?: boolean } };
  };
  return pluginOptions?.i18n?.localized === true && Boolean(strapi.plugins.i18n);
};

/** The site's default language, for types that are localized. */
export const defaultLocale = async (strapi: Core.Strapi): Promise<string> => {
  const locales = strapi.plugin('i18n').service('locales') as {
    getDefaultLocale(): Promise<string>;
  };
  return locales.getDefaultLocale();
};
