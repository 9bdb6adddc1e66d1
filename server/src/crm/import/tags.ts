import type { Core, UID } from '@strapi/strapi';
import { getInspected } from '../mapping/registry';
import { readRows } from '../mapping/records';
import { serialize } from '../change-capture/mapping/serialize';
import { createTag } from '../resources/create-tag';

/** Finds the tags that a file names, by slug or by name, and makes those that are not there. */
export interface ImportTags {
  /** @returns the ids of the tags. */
  idsOf(names: readonly string[]): Promise<string[]>;
  /** @returns the ids of the rows of such tags; of the plugin's own. */
  rowIdsOf(ids: readonly string[]): Promise<number[]>;
  /** Puts a tag on many contacts at once. */
  add(tagId: string, contactIds: readonly string[]): Promise<void>;
}

export const createImportTags = (strapi: Core.Strapi): ImportTags => {
  const known = new Map<string, string>();
  const rows = new Map<string, number>();
  const watched = getInspected(strapi, 'tag');

  const find = async (name: string): Promise<string | null> => {
    const attributes = watched.source.fields.flatMap(({ attribute }) => attribute ?? []);
    if (attributes.length === 0) return null;
    const where = { $or: attributes.map((attribute) => ({ [attribute]: { $eqi: name } })) };
    const [row] = await readRows(strapi, watched, where, { keys: null, tags: false }, { limit: 1 });
    return row ? serialize(watched.source, row).id : null;
  };

  const idOf = async (name: string): Promise<string> => {
    const key = name.toLowerCase();
    const cached = known.get(key);
    if (cached) return cached;
    const found = await find(name);
    const id = found ?? (await createTag(strapi, { name }, () => find(name))).id;
    known.set(key, id);
    return id;
  };

  return {
    async idsOf(names) {
      const ids: string[] = [];
      for (const name of names) ids.push(await idOf(name));
      return [...new Set(ids)];
    },
    async rowIdsOf(ids) {
      const rowIds: number[] = [];
      for (const id of ids) {
        const cached = rows.get(id);
        const [row] = cached
          ? [{ id: cached }]
          : ((await strapi.db
              .queryBuilder(watched.uid)
              .init({ select: ['id'], where: { documentId: id }, limit: 1 })
              .execute()) as { id: number }[]);
        if (row) rows.set(id, row.id);
        if (row) rowIds.push(row.id);
      }
      return rowIds;
    },
    async add(tagId, contactIds) {
      const { source, uid, draftAndPublish } = getInspected(strapi, 'contact');
      if (!source.tags) return;
      for (const documentId of contactIds) {
        await strapi.documents(uid as UID.ContentType).update({
          documentId,
          data: { [source.tags]: { connect: [tagId] } },
          ...(draftAndPublish && { status: 'published' }),
        } as never);
      }
    },
  };
};
