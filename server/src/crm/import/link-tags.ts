import type { UID } from '@strapi/strapi';
import { currentExecutor, table } from '../../database/connection';
import { getInspected } from '../mapping/registry';
import { inChunks } from '../../database/matching-documents';
import { impactOf, isSubscribed, trackDocuments } from '../capture/tracked-changes';
import type { WriteContext } from '../capture/write-context';
import type { ImportTags } from './tags';

const CONTACT = 'plugin::switchboard.contact' as UID.ContentType;

interface JoinTable {
  name: string;
  joinColumn: { name: string };
  inverseJoinColumn: { name: string };
  orderColumnName?: string;
  inverseOrderColumnName?: string;
}

/** A contact and the tags that it gets and does not have. */
export interface TagLink {
  rowId: number;
  documentId: string;
  tagIds: readonly string[];
  /** How many tags it has before. */
  after: number;
}

/**
 * Links contacts to tags in the relation's own table: the host's `connect` renumbers all contacts of
 * a tag at each call, and a tag of an import may have all of them.
 */
export const linkTags = async (
  context: WriteContext,
  tags: ImportTags,
  links: readonly TagLink[]
): Promise<void> => {
  if (links.length === 0) return;
  const { strapi } = context;
  const { joinTable } = strapi.db.metadata.get(CONTACT).attributes.tags as unknown as {
    joinTable: JoinTable;
  };
  const rows: Record<string, unknown>[] = [];
  for (const { rowId, tagIds, after } of links) {
    const tagRows = await tags.rowIdsOf(tagIds);
    tagRows.forEach((tagRow, index) =>
      rows.push({
        [joinTable.joinColumn.name]: rowId,
        [joinTable.inverseJoinColumn.name]: tagRow,
        ...(joinTable.orderColumnName && { [joinTable.orderColumnName]: after + index + 1 }),
        ...(joinTable.inverseOrderColumnName && { [joinTable.inverseOrderColumnName]: rowId }),
      })
    );
  }
  // What is tracked already is filed under the description of the type that it was tracked with.
  const contacts = [...context.changes.keys()].find(({ source }) => source.kind === 'contact');
  const watched = contacts ?? getInspected(strapi, 'contact');
  const impact = impactOf(watched, 'update', { tags: [] });
  if (await isSubscribed(context, watched, impact)) {
    const ids = links.map(({ documentId }) => documentId);
    await trackDocuments(context, watched, ids, impact);
  }
  const executor = await currentExecutor(strapi);
  // SQLite limits the number of variables of one statement.
  for (const chunk of inChunks(rows)) {
    await table(strapi, executor, joinTable.name).insert(chunk);
  }
};
