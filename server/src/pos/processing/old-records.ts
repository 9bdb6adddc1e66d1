import type { App } from '../../app';
import type { Tx } from '../../database/db';
import { nextTurn } from '../../runtime/event-loop';
import { takeOverTrialCounts } from '../../stock/counts';
import {
  POS_EVENTS_TABLE,
  type PosEventRow,
  POS_MAPPED_LINES_TABLE,
  POS_MAPPINGS_TABLE,
  type PosMappingRow,
} from '../tables';

const AT_ONCE = 500;

type MadeItem = Pick<PosMappingRow, 'id' | 'item_id'>;
type Resolved = Pick<PosEventRow, 'id' | 'items'>;

/** Lines of these records that are of an item which a mapping made are that mapping's. */
const claimLines = async (tx: Tx, records: readonly Resolved[], made: readonly MadeItem[]) => {
  const mappingOf = new Map(made.map(({ id, item_id: item }) => [Number(item), Number(id)]));
  const lines = records.flatMap(({ id, items }) =>
    (JSON.parse(items ?? '[]') as (number | null)[]).flatMap((item, line) => {
      const mapping = item === null ? undefined : mappingOf.get(Number(item));
      return mapping === undefined ? [] : [{ mapping_id: mapping, event_id: Number(id), line }];
    })
  );
  if (lines.length === 0) return;
  const known = (await tx
    .table(POS_MAPPED_LINES_TABLE)
    .select('mapping_id', 'event_id', 'line')
    .whereIn('event_id', [...new Set(lines.map(({ event_id: id }) => id))])) as typeof lines;
  const keyOf = (one: (typeof lines)[number]) => `${one.mapping_id}/${one.event_id}/${one.line}`;
  const written = new Set(known.map(keyOf));
  const missing = lines.filter((one) => !written.has(keyOf(one)));
  await tx.insert(POS_MAPPED_LINES_TABLE, missing);
};

/** Upgrades data of version 0.2 for undone mappings and trial counts. Before its queue is moved; repeatable. */
export const takeOverRecords = async (app: App): Promise<void> => {
  const { db, strapi } = app;
  if (!(await strapi.db.getSchemaConnection().hasColumn(POS_EVENTS_TABLE, 'due_at'))) return;
  await db.retrying((tx) => takeOverTrialCounts(tx));
  const made = (await db.pool
    .table(POS_MAPPINGS_TABLE)
    .select('id', 'item_id')
    .where({ made_item: true })
    .whereNotNull('item_id')
    .whereNull('undone_at')) as MadeItem[];
  if (made.length === 0) return;
  for (let after = 0; ;) {
    const records = (await db.pool
      .table(POS_EVENTS_TABLE)
      .select('id', 'items')
      .where('id', '>', after)
      .whereNotNull('items')
      .orderBy('id')
      .limit(AT_ONCE)) as Resolved[];
    await db.retrying((tx) => claimLines(tx, records, made));
    if (records.length < AT_ONCE) return;
    after = Number(records.at(-1)?.id);
    await nextTurn();
  }
};
