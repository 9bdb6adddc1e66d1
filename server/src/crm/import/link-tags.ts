import type { Core, UID } from '@strapi/strapi';
import { currentExecutor, table } from '../../database/connection';
import { getInspected } from '../sources/registry';
import type { Scope } from '../sources/scope';
import { isWanted, touchDocuments, touchingOf } from '../sources/touch';
import type { ImportTags } from './import-tags';

const CONTACT = 'plugin::switchboard.contact' as UID.ContentType;

/** Rows a statement: SQLite counts the variables of one. */
const CHUNK = 200;

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
  strapi: Core.Strapi,
  scope: Scope,
  tags: ImportTags,
  links: readonly TagLink[]
): Promise<void> => {
  if (links.length === 0) return;
  const watched = getInspected(strapi, 'contact');
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
  // The scope's own description of the type, which is what its touches are filed under.
  const [noted] = [...scope.touched.keys()].filter(({ source }) => source.kind === 'contact');
  const touching = touchingOf(watched, 'update', { tags: [] });
  if (await isWanted(scope, noted ?? watched, touching)) {
    const ids = links.map(({ documentId }) => documentId);
    await touchDocuments(strapi, scope, noted ?? watched, ids, touching);
  }
  const executor = await currentExecutor(strapi);
  for (let start = 0; start < rows.length; start += CHUNK) {
    await table(strapi, executor, joinTable.name).insert(rows.slice(start, start + CHUNK));
  }
};
