import type { Core } from '@strapi/strapi';
import type { Where } from '../../database/matching-documents';
import { readNewest } from '../../database/transactions';
import { lockVersions } from '../../database/written-rows';
import { serialize } from '../rules/serialize';
import type { EntryStatus, Version } from '../rules/shape';
import type { EntryType } from '../types';

interface Row extends Record<string, unknown> {
  id: number;
  documentId: string;
  locale?: string | null;
  publishedAt?: unknown;
}

const statusOf = (type: EntryType, { publishedAt }: Row): EntryStatus =>
  type.draftAndPublish && (publishedAt ?? null) === null ? 'draft' : 'published';

/** Whether receivers hear of drafts of the type: else nothing of them is read. */
export const seesDrafts = ({ draftAndPublish, drafts }: EntryType): boolean =>
  !draftAndPublish || drafts;

const localeOf = ({ localized }: EntryType, { locale }: Row): string | null =>
  localized ? (locale ?? null) : null;

/** By document id. */
export type Versions = Map<string, Version[]>;

/**
 * Reads documents in all versions that receivers hear of, without the host's read lifecycles. `lock`:
 * until the transaction ends nobody else may change them, so that what differs is this write's doing.
 */
export const readVersions = async (
  strapi: Core.Strapi,
  type: EntryType,
  documentIds: readonly string[],
  { lock = false }: { lock?: boolean } = {}
): Promise<Versions> => {
  // Also those that nobody hears of: two that publish a draft for the first time have no other in common.
  if (lock && (type.draftAndPublish || type.localized)) {
    await lockVersions(strapi, type.uid, documentIds);
  }
  const where: Where = { documentId: { $in: [...documentIds] } };
  if (!seesDrafts(type)) where.publishedAt = { $notNull: true };
  const query = strapi.db
    .queryBuilder(type.uid)
    .init({ where, populate: type.populate, orderBy: { id: 'asc' } });
  if (lock) query.forUpdate();
  const versions: Versions = new Map();
  for (const row of (await readNewest(strapi, () => query.execute())) as Row[]) {
    const status = statusOf(type, row);
    const found = versions.get(row.documentId) ?? [];
    found.push({
      row: row.id,
      locale: localeOf(type, row),
      status,
      entry: serialize(type.shape, row, status),
    });
    versions.set(row.documentId, found);
  }
  return versions;
};

/** The languages of which documents have a draft. */
export const readDraftLocales = async (
  strapi: Core.Strapi,
  type: EntryType,
  documentIds: readonly string[]
): Promise<Map<string, Set<string | null>>> => {
  const rows = (await strapi.db
    .queryBuilder(type.uid)
    .init({
      select: ['id', 'documentId', ...(type.localized ? ['locale'] : [])],
      where: { documentId: { $in: [...documentIds] }, publishedAt: null },
    })
    .execute()) as Row[];
  const locales = new Map<string, Set<string | null>>();
  for (const row of rows) {
    const found = locales.get(row.documentId) ?? new Set<string | null>();
    found.add(localeOf(type, row));
    locales.set(row.documentId, found);
  }
  return locales;
};
