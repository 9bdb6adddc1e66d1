import type { UID } from '@strapi/strapi';
import { inChunks } from '../../database/written-rows';
import type { CrmWrite } from '../capture/crm-write';
import { readRows, serialize } from '../mapping/records';
import { getInspected } from '../mapping/sources';
import type { WatchedSource } from '../mapping/sources';
import { createTag } from '../resources/crm-records';
import type { App } from '../../app';

/** Finds the tags that a file names, by slug or by name, and makes those that are not there. */
export class ImportTags {
  private readonly known = new Map<string, string>();
  private readonly rows = new Map<string, number>();
  private readonly watched: WatchedSource;

  constructor(private readonly app: App) {
    this.watched = getInspected(app, 'tag');
  }

  /** @returns the ids of the tags. */
  async idsOf(names: readonly string[]): Promise<string[]> {
    const ids: string[] = [];
    for (const name of names) ids.push(await this.idOf(name));
    return [...new Set(ids)];
  }

  /** @returns the ids of the rows of such tags; of the plugin's own. */
  async rowIdsOf(ids: readonly string[]): Promise<number[]> {
    const rowIds: number[] = [];
    for (const id of ids) {
      const cached = this.rows.get(id);
      const [row] = cached
        ? [{ id: cached }]
        : ((await this.app.strapi.db
            .queryBuilder(this.watched.uid)
            .init({ select: ['id'], where: { documentId: id }, limit: 1 })
            .execute()) as { id: number }[]);
      if (row) this.rows.set(id, row.id);
      if (row) rowIds.push(row.id);
    }
    return rowIds;
  }

  /** Puts a tag on a contact. */
  async add(tagId: string, documentId: string): Promise<void> {
    const { source, uid, draftAndPublish } = getInspected(this.app, 'contact');
    if (!source.tags) return;
    await this.app.strapi.documents(uid as UID.ContentType).update({
      documentId,
      data: { [source.tags]: { connect: [tagId] } },
      ...(draftAndPublish && { status: 'published' }),
    } as never);
  }

  private async find(name: string): Promise<string | null> {
    const attributes = this.watched.source.fields.flatMap(({ attribute }) => attribute ?? []);
    if (attributes.length === 0) return null;
    const where = { $or: attributes.map((attribute) => ({ [attribute]: { $eqi: name } })) };
    const [row] = await readRows(
      this.app,
      this.watched,
      where,
      { keys: null, tags: false },
      { limit: 1 }
    );
    return row ? serialize(this.watched.source, row).id : null;
  }

  private async idOf(name: string): Promise<string> {
    const key = name.toLowerCase();
    const cached = this.known.get(key);
    if (cached) return cached;
    const found = await this.find(name);
    const id = found ?? (await createTag(this.app, { name }, () => this.find(name))).id;
    this.known.set(key, id);
    return id;
  }
}

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
  write: CrmWrite,
  tags: ImportTags,
  links: readonly TagLink[]
): Promise<void> => {
  if (links.length === 0) return;
  const { app } = write;
  const { joinTable } = app.strapi.db.metadata.get(CONTACT).attributes.tags as unknown as {
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
  const ids = links.map(({ documentId }) => documentId);
  await write.trackTagging(getInspected(app, 'contact'), ids);
  const db = await app.db.current();
  // SQLite limits the number of variables of one statement.
  for (const chunk of inChunks(rows)) {
    await db.table(joinTable.name).insert(chunk);
  }
};
