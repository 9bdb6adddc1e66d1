import type { Knex } from 'knex';
import type { Column, PlainTable } from '../../database/tables/plain-tables';
import { nextTurn } from '../../runtime/event-loop';
import { HOUR_MS, hourOf } from '../../runtime/text';
import type { CountedAttempt } from '../rules/failing';
import type { App } from '../../app';
import type { Db } from '../../database/db';

/** Upper ends of the spans of response times (ms), the last being open. Each has a column, so these never change. */
export const SPAN_ENDS = [5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000] as const;

/** Which span a response time is counted in, from 0 on. */
export const spanOf = (milliseconds: number): number => {
  const at = SPAN_ENDS.findIndex((end) => milliseconds <= end);
  return at < 0 ? SPAN_ENDS.length : at;
};

/** Milliseconds that a `share` of answers did not exceed, interpolated; of the open span its start; null: no answer. */
export const quantile = (counts: readonly number[], share: number): number | null => {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  const wanted = total * share;
  let below = 0;
  for (const [at, count] of counts.entries()) {
    if (count > 0 && below + count >= wanted) {
      const from = SPAN_ENDS[at - 1] ?? 0;
      const to = SPAN_ENDS[at] ?? from;
      return Math.round(from + ((to - from) * (wanted - below)) / count);
    }
    below += count;
  }
  return SPAN_ENDS.at(-1) ?? null;
};

const ROLLUPS_TABLE = 'switchboard_delivery_rollups';
const TOTALS_TABLE = 'switchboard_delivery_totals';

const SPAN_COLUMNS = Array.from({ length: SPAN_ENDS.length + 1 }, (_unused, at) => `span_${at}`);
const OUTCOMES = ['sent', 'failed', 'ended_sent', 'ended_failed'] as const;
const SUMS = [...OUTCOMES, ...SPAN_COLUMNS];

const sums = (type: 'integer' | 'biginteger'): Record<string, Column> =>
  Object.fromEntries(SUMS.map((name) => [name, { type, column: { defaultTo: 0 } }]));

/**
 * One row per webhook and UTC hour (start in epoch milliseconds) with attempts. `sent` and `failed` count attempts,
 * `ended_*` deliveries, `span_*` response times. Without ids: their counter would run out.
 */
export const rollupsTable: PlainTable = {
  tableName: ROLLUPS_TABLE,
  withoutId: true,
  attributes: { webhook_id: { type: 'integer' }, hour: { type: 'biginteger' }, ...sums('integer') },
  indexes: [
    { name: 'sb_rollup_webhook', columns: ['webhook_id', 'hour'], type: 'unique' },
    { name: 'sb_rollup_hour', columns: ['hour'] },
  ],
};

/** One row, `part` 0: sums of removed rollups. With the existing ones they are all-time counters, which never fall. */
export const totalsTable: PlainTable = {
  tableName: TOTALS_TABLE,
  withoutId: true,
  attributes: { part: { type: 'integer' }, ...sums('biginteger') },
  indexes: [{ name: 'sb_total_part', columns: ['part'], type: 'unique' }],
};

interface RolledAttempt extends CountedAttempt {
  webhookId: number;
  /** Milliseconds until the receiver had answered; null if it did not. */
  answeredIn: number | null;
}

type Row = Record<string, number>;

const columnsOf = ({ ok, ended, answeredIn }: RolledAttempt): string[] => [
  ok ? 'sent' : 'failed',
  ...(ended === null ? [] : [`ended_${ended}`]),
  ...(answeredIn === null ? [] : [`span_${spanOf(answeredIn)}`]),
];

const summed = (attempts: readonly RolledAttempt[]): Row[] => {
  const rows = new Map<string, Row>();
  for (const attempt of attempts) {
    const hour = hourOf(attempt.at);
    const key = `${attempt.webhookId}/${hour}`;
    const row = rows.get(key) ?? {
      webhook_id: attempt.webhookId,
      hour,
      ...Object.fromEntries(SUMS.map((name) => [name, 0])),
    };
    rows.set(key, row);
    for (const column of columnsOf(attempt)) row[column] = (row[column] ?? 0) + 1;
  }
  return [...rows.values()];
};

const rollups = (db: Db) => db.table(ROLLUPS_TABLE);

/** Counts attempts in the recording transaction, in one statement and in fixed order, which prevents deadlocks. */
export const addToRollups = async (db: Db, attempts: readonly RolledAttempt[]): Promise<void> => {
  if (attempts.length === 0) return;
  const rows = summed(attempts).sort(
    (a, b) => (a.webhook_id ?? 0) - (b.webhook_id ?? 0) || (a.hour ?? 0) - (b.hour ?? 0)
  );
  await db.insert(ROLLUPS_TABLE, rows, { unique: ['webhook_id', 'hour'], then: 'add' });
};

const toRollup = (row: Readonly<Record<string, number | string | null>>) => {
  const number = (name: string): number => Number(row[name] ?? 0);
  return {
    webhookId: number('webhook_id'),
    hour: number('hour'),
    attempts: { sent: number('sent'), failed: number('failed') },
    ended: { sent: number('ended_sent'), failed: number('ended_failed') },
    responseTimes: SPAN_COLUMNS.map(number),
  };
};

/** Counts of attempts and deliveries that ended, of one webhook in one hour. */
export type Rollup = ReturnType<typeof toRollup>;

interface HoursQuery {
  /** From the hour of this time on, up to another one if there is one; epoch milliseconds. */
  since: number;
  before?: number;
  /** Ids; else of all webhooks together: `webhookId` is 0 then. */
  webhooks?: readonly number[];
  /** The sums of all together that are asked for. */
  sums?: readonly string[];
}

export const readHours = async (app: App, { since, before, webhooks, sums = SUMS }: HoursQuery) => {
  const query = rollups(await app.db.current())
    .where('hour', '>=', hourOf(since))
    .orderBy('hour');
  if (before !== undefined) query.where('hour', '<', before);
  if (webhooks) {
    query.whereIn('webhook_id', [...webhooks]).orderBy('webhook_id');
  } else {
    const sum = Object.fromEntries(sums.map((name) => [name, name]));
    query.select('hour').sum(sum).groupBy('hour');
  }
  return ((await query) as Parameters<typeof toRollup>[0][]).map(toRollup);
};

/** How many deliveries failed finally since the hour of this time, by webhook; those without any are left out. */
export const countFailed = async (db: Db, since: number, webhooks?: readonly number[]) => {
  const query = rollups(db)
    .select('webhook_id')
    .sum({ failed: 'ended_failed' })
    .where('hour', '>=', hourOf(since))
    .where('ended_failed', '>', 0)
    .groupBy('webhook_id');
  if (webhooks) query.whereIn('webhook_id', webhooks);
  const found = (await query) as Row[];
  return new Map(found.map((row) => [Number(row.webhook_id), Number(row.failed)]));
};

/** All counts ever, in one statement: between two, rows could go from one table into the other. */
export const readTotals = async (app: App): Promise<Omit<Rollup, 'webhookId' | 'hour'>> => {
  const sums = SUMS.map((name) => `COALESCE(SUM(${name}), 0) AS ${name}`).join(', ');
  const both = SUMS.map((name) => `r.${name} + t.${name} AS ${name}`).join(', ');
  const db = await app.db.current();
  const [row = {}] = await db.rows<Row>(
    `SELECT ${both} FROM (SELECT ${sums} FROM ${db.named(ROLLUPS_TABLE)}) r
     CROSS JOIN (SELECT ${sums} FROM ${db.named(TOTALS_TABLE)}) t`
  );
  return toRollup(row);
};

const FOLD_AT_ONCE = 500;

/** Removes up to 500 rollups of a webhook or an hour, and adds them to the totals. @returns how many there were */
const fold = (app: App, only: { webhook_id: number } | { hour: number }): Promise<number> =>
  app.db.retrying(async (tx) => {
    const these = (): Knex.QueryBuilder => rollups(tx).where(only);
    // Exactly those that are added: others may be counting in this hour, or for this webhook.
    const going = (await these()
      .orderBy(['webhook_id', 'hour'])
      .limit(FOLD_AT_ONCE)
      .forUpdate()) as Row[];
    if (going.length === 0) return 0;
    const valuesOf = (name: string): number[] => going.map((row) => Number(row[name]));
    await these()
      .whereIn('webhook_id', valuesOf('webhook_id'))
      .whereIn('hour', valuesOf('hour'))
      .delete();
    const sumOf = (name: string): number => valuesOf(name).reduce((sum, one) => sum + one, 0);
    const total = { part: 0, ...Object.fromEntries(SUMS.map((name) => [name, sumOf(name)])) };
    await tx.insert(TOTALS_TABLE, [total], { unique: ['part'], then: 'add' });
    return going.length;
  });

const foldAll = async (app: App, only: Parameters<typeof fold>[1]): Promise<void> => {
  while ((await fold(app, only)) === FOLD_AT_ONCE) await nextTurn();
};

export const removeRollupsOf = (app: App, webhook: number): Promise<void> =>
  foldAll(app, { webhook_id: webhook });

/** The oldest hour that ended before a time, of all webhooks. @returns whether there was one. */
export const removeOldestHour = async (app: App, before: number): Promise<boolean> => {
  const db = await app.db.current();
  const [oldest] = (await rollups(db).min({ hour: 'hour' })) as { hour: number | string | null }[];
  const hour = oldest?.hour ?? null;
  if (hour === null || Number(hour) + HOUR_MS > before) return false;
  await foldAll(app, { hour: Number(hour) });
  return true;
};
