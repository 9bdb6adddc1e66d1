import type { Core } from '@strapi/strapi';
import { defaultLocale } from '../../database/default-locale';
import type { Where } from '../../database/matching-documents';
import { readNewest } from '../../database/transactions';
import type { Entry } from './mapping';
import type { WatchedSource } from './watched-types';

/** What of a record to read. */
export interface Reading {
  /** Payload keys; null: all. */
  keys: ReadonlySet<string> | null;
  tags: boolean;
}

interface ComponentSchema {
  attributes: Record<string, { type: string; private?: boolean }>;
}

/** Public scalars of a component: no relation, password or private attribute can get any further. */
const componentFields = (strapi: Core.Strapi, uid: string): string[] => {
  const component = strapi.components[uid as keyof typeof strapi.components] as
    ComponentSchema | undefined;
  return Object.entries(component?.attributes ?? {})
    .filter(([, { type, private: hidden }]) => {
      return (
        !hidden && !['password', 'relation', 'media', 'component', 'dynamiczone'].includes(type)
      );
    })
    .map(([name]) => name);
};

const populateFor = (strapi: Core.Strapi, watched: WatchedSource, reading: Reading): Where => {
  const populate: Where = {};
  for (const { path, attribute, shape } of watched.source.fields) {
    if (!attribute || !shape) continue;
    if (reading.keys && !reading.keys.has(path.split('.')[0] ?? path)) continue;
    if (shape.type === 'relation') {
      populate[attribute] = {
        select: shape.target === 'admin::user' ? ['id'] : ['id', 'documentId'],
      };
    } else if (shape.type === 'component') {
      populate[attribute] = { select: ['id', ...componentFields(strapi, shape.component ?? '')] };
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
export const countedWhere = async (
  strapi: Core.Strapi,
  watched: WatchedSource
): Promise<Where> => ({
  ...(watched.draftAndPublish && { publishedAt: { $notNull: true } }),
  ...(watched.localized && { locale: await defaultLocale(strapi) }),
});

/** What is in the bin, or what is not; no condition where a type has no bin. */
export const binWhere = (watched: WatchedSource, inBin: boolean): Where[] => {
  const field = watched.source.fields.find(({ path }) => path === 'dates.trashed_at');
  return field?.attribute ? [{ [field.attribute]: { [inBin ? '$notNull' : '$null']: true } }] : [];
};

/**
 * Reads rows without the host's read lifecycles: nothing that a site hooks there may change, slow
 * down or refuse what an event says. `lock`: until the transaction ends nobody else may change them.
 */
export const readRows = async (
  strapi: Core.Strapi,
  watched: WatchedSource,
  where: Where,
  reading: Reading,
  { lock, ...page }: { orderBy?: Where; limit?: number; offset?: number; lock?: boolean } = {}
): Promise<Entry[]> => {
  const populate = populateFor(strapi, watched, reading);
  const counted = await countedWhere(strapi, watched);
  const query = strapi.db.queryBuilder(watched.uid).init({
    ...page,
    where: Object.keys(counted).length > 0 ? { $and: [where, counted] } : where,
    ...(Object.keys(populate).length > 0 && { populate }),
  });
  if (lock) query.forUpdate();
  return (await readNewest(strapi, () => query.execute())) as Entry[];
};
