import { existingOf } from '../../database/written-rows';
import { readNewest } from '../../database/transactions';
import type { PlainTable } from '../../database/tables/plain-tables';
import type { Before } from '../rules';
import type { WatchedSource } from '../mapping/watched-types';
import type { App } from '../../app';

const TABLE = 'switchboard_unpublished';

/**
 * Records of a type with draft and publish that were published once and are not now, with what
 * receivers last heard of them. To unpublish is no deletion ("deleted for good"), so nothing is sent
 * then; without this memory, publishing again would look like a new record, and deleting the draft
 * for good would go unsaid.
 */
export const unpublishedTable: PlainTable = {
  tableName: TABLE,
  attributes: {
    id: { type: 'increments' },
    kind: { type: 'string', column: { args: [32] } },
    document_id: { type: 'string', column: { args: [64] } },
    state: { type: 'text' },
  },
  indexes: [{ name: 'sb_unpublished_doc', columns: ['kind', 'document_id'], type: 'unique' }],
};

export interface Unpublished {
  load(documentIds: readonly string[]): Promise<Map<string, Before>>;
  save(documentId: string, state: Before): Promise<void>;
  forget(documentIds: readonly string[]): Promise<void>;
  /** Which documents still have a row of any kind: a draft, another language. */
  existing(documentIds: readonly string[]): Promise<ReadonlySet<string>>;
}

export const unpublishedOf = async (app: App, watched: WatchedSource): Promise<Unpublished> => {
  const { kind } = watched.source;
  const db = await app.db.current();
  const rowsOf = (documentIds: readonly string[]) =>
    db
      .table(TABLE)
      .where({ kind })
      .whereIn('document_id', [...documentIds]);
  return {
    async load(documentIds) {
      const rows = (await readNewest(app.strapi, async () => rowsOf(documentIds))) as {
        document_id: string;
        state: string;
      }[];
      return new Map(rows.map((row) => [row.document_id, JSON.parse(row.state) as Before]));
    },
    async save(documentId, state) {
      await rowsOf([documentId]).delete();
      const row = { kind, document_id: documentId, state: JSON.stringify(state) };
      await db.table(TABLE).insert(row);
    },
    async forget(documentIds) {
      await rowsOf(documentIds).delete();
    },
    async existing(documentIds) {
      return new Set(
        await readNewest(app.strapi, () => existingOf(app.strapi, watched.uid, documentIds))
      );
    },
  };
};
