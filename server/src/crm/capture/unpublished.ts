import { existingOf } from '../../database/written-rows';
import { readNewest } from '../../database/transactions';
import type { PlainTable } from '../../database/tables/plain-tables';
import type { Before } from '../rules';
import type { Changes } from '../../webhooks/unit-of-work';
import type { WatchedSource } from '../mapping/sources';
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

/**
 * Keeps what unpublishing hides: a record that is gone from among the published ones but still there
 * (as a draft, in another language) has no event, and one that comes back is compared with what it was.
 * @param rows the records that are published now, by document id
 * @returns the changes that can still have an event
 */
export const withoutUnpublished = async <C extends { before: Before | null }>(
  app: App,
  { uid, source: { kind } }: WatchedSource,
  changes: Changes<C>,
  rows: ReadonlyMap<string, unknown>
): Promise<Changes<C>> => {
  const unsettled = changes.filter(([id, { before }]) => !before || !rows.has(id));
  if (unsettled.length === 0) return changes;
  const db = await app.db.current();
  const rowsOf = (ids: readonly string[]) =>
    db.table(TABLE).where({ kind }).whereIn('document_id', ids);
  const ids = unsettled.map(([id]) => id);
  const remembered = (await readNewest(app.strapi, async () => rowsOf(ids))) as {
    document_id: string;
    state: string;
  }[];
  const states = new Map(remembered.map((row) => [row.document_id, row.state]));
  const existing = new Set(
    await readNewest(app.strapi, () =>
      existingOf(
        app.strapi,
        uid,
        ids.filter((id) => !rows.has(id))
      )
    )
  );
  for (const [id, change] of unsettled) {
    const state = states.get(id);
    if (existing.has(id)) {
      if (!change.before) continue;
      await rowsOf([id]).delete();
      const now = { kind, document_id: id, state: JSON.stringify(change.before) };
      await db.table(TABLE).insert(now);
    } else if (state !== undefined) {
      change.before ??= JSON.parse(state) as Before;
      await rowsOf([id]).delete();
    }
  }
  return changes.filter(([id]) => !existing.has(id));
};
