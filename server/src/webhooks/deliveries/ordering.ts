import { createHash } from 'node:crypto';
import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import type { Subject } from '../../../../shared/contracts/webhooks';
import { type Executor, rawStatement, rowsOf, table } from '../../database/connection';
import { qualified } from '../../database/dialects/types';
import { insertRows } from '../../database/insert-rows';
import { sparseColumn } from '../../database/tables/sparse-index';
import { ASIDE_UNTIL, HELD_UNTIL } from '../delivering/store/far-times';
import { DELIVERIES_TABLE, type DeliveryRow, LINE_ENDS_TABLE, WEBHOOKS_TABLE } from '../tables';

/**
 * Deliveries of a webhook that are about one record stand in a line, where the webhook's `ordering` is
 * `by_record`: only the first of a line that has not ended is sent. What a claim comes upon further
 * behind is held, due for nobody, so it costs no later look or claim anything. Whatever ends a
 * delivery notes its line in the same transaction, and the next claim lets the first of that line go.
 * Claims of such a webhook follow one another (`careful-claims.ts`); what ends deliveries waits for none.
 *
 * Earlier is whose row has the lower id: writers of one record follow one another, so do their rows.
 */

/** What a table of ours has room for, and its index. */
const LONGEST = 255;
const ENDS_AT_ONCE = 500;

export type Line = string;

const nameOf = (row: Pick<DeliveryRow, 'subject_type' | 'subject_id'>): string =>
  `${row.subject_type}:${row.subject_id}`;

/** The line of a record. */
export const lineOf = ({ type, id }: Pick<Subject, 'type' | 'id'>): Line => {
  const named = nameOf({ subject_type: type, subject_id: id });
  return named.length <= LONGEST ? named : createHash('sha256').update(named).digest('hex');
};

/** The line of a delivery that was queued before it was to stand in one; null: it is about no record. */
export const lineOfRow = (
  row: Pick<DeliveryRow, 'subject_type' | 'subject_id' | 'status' | 'is_test'>
): Line | null => {
  const { subject_type: type, subject_id: id } = row;
  if (type === null || id === null || row.status !== 'pending' || row.is_test) return null;
  return lineOf({ type, id });
};

/** The webhook's column in the index of lines: MySQL knows sparse indexes by a column of their own. */
const webhookInLine = (strapi: Core.Strapi): string =>
  strapi.db.dialect.client === 'mysql' ? sparseColumn('webhook_id', 'line') : 'webhook_id';

/**
 * The first of a line that has not ended: of those that hold others, or of all. A sign before `due_at`
 * keeps it from being looked for by an index of due times, in which a long queue is one range.
 */
export const firstOfLine = (strapi: Core.Strapi, holding: boolean): string =>
  `(SELECT p.id FROM ?? p WHERE p.${webhookInLine(strapi)} = d.webhook_id AND p.line = d.line
    AND +p.due_at < ${ASIDE_UNTIL} ${holding ? 'AND p.released_at IS NULL' : ''} ORDER BY p.id LIMIT 1)`;

/** Notes, in the transaction that ends or releases deliveries, that those after them may go. */
export const noteEnds = async (
  strapi: Core.Strapi,
  executor: Executor,
  ended: readonly { webhook: number; line: Line | null }[]
): Promise<void> => {
  const noted = new Map<string, { webhook_id: number; line: Line }>();
  for (const { webhook, line } of ended) {
    if (line !== null) noted.set(`${webhook}/${line}`, { webhook_id: webhook, line });
  }
  if (noted.size > 0) await insertRows(strapi, executor, LINE_ENDS_TABLE, [...noted.values()]);
};

const deliveries = (strapi: Core.Strapi, executor: Executor): Knex.QueryBuilder =>
  table(strapi, executor, DELIVERIES_TABLE);

/** What is held becomes due again when it was. */
const letGo = (strapi: Core.Strapi, executor: Executor, ids: readonly number[], now: number) =>
  deliveries(strapi, executor)
    .whereIn('id', [...ids])
    .andWhere({ due_at: HELD_UNTIL })
    .update({ due_at: executor.raw('COALESCE(next_attempt_at, ?)', [now]), owner: null });

/**
 * Lets the first of each line go in which something has ended since the last claim, of some hundreds of
 * ends. @returns whether there are more
 */
export const followEnds = async (
  strapi: Core.Strapi,
  trx: Executor,
  webhook: number,
  now: number
): Promise<boolean> => {
  const name = qualified({ name: DELIVERIES_TABLE, schema: strapi.db.getSchemaName() });
  const ends = (await table(strapi, trx, LINE_ENDS_TABLE)
    .where({ webhook_id: webhook })
    .orderBy('id')
    .limit(ENDS_AT_ONCE)
    .pluck('id')) as number[];
  if (ends.length === 0) return false;
  const found = rowsOf<{ holding: number | null; foremost: number | null }>(
    await rawStatement(
      trx,
      `SELECT ${firstOfLine(strapi, true)} AS holding, ${firstOfLine(strapi, false)} AS foremost
       FROM ?? d WHERE d.id IN (${ends.map(() => '?').join(', ')})`,
      [name, name, qualifiedEnds(strapi), ...ends]
    )
  );
  const firsts = new Set(
    found.flatMap(({ holding, foremost }) => [holding, foremost]).flatMap((id) => id ?? [])
  );
  if (firsts.size > 0) await letGo(strapi, trx, [...firsts].map(Number), now);
  await table(strapi, trx, LINE_ENDS_TABLE).whereIn('id', ends).delete();
  return ends.length === ENDS_AT_ONCE;
};

const qualifiedEnds = (strapi: Core.Strapi): string =>
  qualified({ name: LINE_ENDS_TABLE, schema: strapi.db.getSchemaName() });

/** A delivery that is due, as far as its place in a line goes. */
export type Queued = Pick<
  DeliveryRow,
  'id' | 'due_at' | 'line' | 'subject_type' | 'subject_id' | 'status' | 'is_test'
>;

export const QUEUED_COLUMNS = [
  'id',
  'due_at',
  'line',
  'subject_type',
  'subject_id',
  'status',
  'is_test',
] as const satisfies readonly (keyof Queued)[];

/** Puts deliveries into their lines: one statement for all but those whose names are too long. */
export const standInLine = async (
  strapi: Core.Strapi,
  executor: Executor,
  rows: readonly Pick<Queued, 'id' | 'subject_type' | 'subject_id' | 'status' | 'is_test'>[]
): Promise<void> => {
  const named: number[] = [];
  for (const row of rows) {
    const line = lineOfRow(row);
    if (line === null) continue;
    if (line === nameOf(row)) named.push(Number(row.id));
    else await deliveries(strapi, executor).where({ id: row.id }).update({ line });
  }
  if (named.length === 0) return;
  const isMysql = strapi.db.dialect.client === 'mysql';
  const name = isMysql
    ? "CONCAT(subject_type, ':', subject_id)"
    : "subject_type || ':' || subject_id";
  await deliveries(strapi, executor)
    .whereIn('id', named)
    .update({ line: executor.raw(name) });
};

/**
 * Of deliveries that are due and that the transaction has locked, those that are first in their lines;
 * the others are held.
 */
export const holdBehind = async <Q extends Queued>(
  strapi: Core.Strapi,
  trx: Executor,
  due: readonly Q[]
): Promise<Q[]> => {
  // Queued before the webhook had an order, or brought back after its end.
  await standInLine(
    strapi,
    trx,
    due.filter(({ line }) => line === null)
  );
  const inLine = due.filter((row) => (row.line ?? lineOfRow(row)) !== null);
  if (inLine.length === 0) return [...due];
  const name = qualified({ name: DELIVERIES_TABLE, schema: strapi.db.getSchemaName() });
  const found = rowsOf<{ id: number; first: number | null }>(
    await rawStatement(
      trx,
      `SELECT d.id AS id, ${firstOfLine(strapi, true)} AS first FROM ?? d
       WHERE d.id IN (${inLine.map(() => '?').join(', ')})`,
      [name, name, ...inLine.map(({ id }) => id)]
    )
  );
  const behind = new Set(
    found
      .filter(({ id, first }) => first !== null && Number(first) < Number(id))
      .map(({ id }) => Number(id))
  );
  if (behind.size > 0) {
    await deliveries(strapi, trx)
      .whereIn('id', [...behind])
      .update({ due_at: HELD_UNTIL, owner: null });
  }
  return due.filter(({ id }) => !behind.has(Number(id)));
};

/**
 * Takes up to `limit` deliveries of a webhook that has no order any more out of their lines, and lets
 * those go that are held. @returns how many
 */
export const dissolveLines = async (
  strapi: Core.Strapi,
  trx: Executor,
  { webhook, now, limit }: { webhook: number; now: number; limit: number }
): Promise<number> => {
  const held = (await deliveries(strapi, trx)
    .where({ webhook_id: webhook, due_at: HELD_UNTIL })
    .limit(limit)
    .pluck('id')) as number[];
  if (held.length > 0) await letGo(strapi, trx, held, now);
  const others =
    held.length < limit
      ? ((await deliveries(strapi, trx)
          .where(webhookInLine(strapi), webhook)
          .whereNotNull('line')
          .whereNotIn('id', held)
          .limit(limit - held.length)
          .pluck('id')) as number[])
      : [];
  const ids = [...held, ...others];
  if (ids.length > 0) await deliveries(strapi, trx).whereIn('id', ids).update({ line: null });
  await table(strapi, trx, LINE_ENDS_TABLE).where({ webhook_id: webhook }).delete();
  return ids.length;
};

/** Notes every line of a webhook in which something is held and that is not noted yet, whatever may have ended there. */
export const noteHeld = async (
  strapi: Core.Strapi,
  executor: Executor,
  webhook: number
): Promise<void> => {
  const schema = strapi.db.getSchemaName();
  const name = qualified({ name: DELIVERIES_TABLE, schema });
  const ends = qualifiedEnds(strapi);
  await rawStatement(
    executor,
    `INSERT INTO ?? (webhook_id, line)
     SELECT DISTINCT webhook_id, line FROM ?? WHERE webhook_id = ? AND due_at = ? AND line IS NOT NULL
       AND line NOT IN (SELECT line FROM ?? WHERE webhook_id = ? AND line IS NOT NULL)`,
    [ends, name, webhook, HELD_UNTIL, ends, webhook]
  );
};

/** Forgets ends that no claim will follow: those of webhooks without an order. */
export const forgetEnds = async (strapi: Core.Strapi, executor: Executor): Promise<void> => {
  const ordered = table(strapi, executor, WEBHOOKS_TABLE)
    .select('id')
    .where({ ordering: 'by_record' });
  await table(strapi, executor, LINE_ENDS_TABLE).whereNotIn('webhook_id', ordered).delete();
};
