import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { currentExecutor, type Executor, inTransaction, table } from '../../database/connection';
import { withTransientRetry } from '../../database/retry';
import { SITE_TABLE } from '../../database/site-instance';
import { JOURNAL_TABLE } from './tables';

/** Events that are numbered in one transaction. */
const AT_ONCE = 1000;
/** The last number that was given. Whoever gives numbers locks this row until the commit. */
const HEAD = { name: 'journal' };

const head = (strapi: Core.Strapi, executor: Executor): Knex.QueryBuilder =>
  table(strapi, executor, SITE_TABLE).where(HEAD);

const lastOf = async (query: Knex.QueryBuilder): Promise<number> => {
  const row = (await query.select('value').first()) as { value: string } | undefined;
  return Number(row?.value ?? 0);
};

const unnumbered = (strapi: Core.Strapi, executor: Executor): Knex.QueryBuilder =>
  table(strapi, executor, JOURNAL_TABLE).whereNull('number').orderBy('id');

const giveNumbers = (strapi: Core.Strapi): Promise<number> =>
  inTransaction(strapi, async ({ trx }) => {
    // Until the commit nobody else gives numbers: whoever sees one sees all that are smaller.
    const before = await lastOf(head(strapi, trx).forUpdate());
    const ids = ((await unnumbered(strapi, trx).limit(AT_ONCE).pluck('id')) as number[]).map(
      Number
    );
    const [first] = ids;
    if (first === undefined) return before;
    // Ids are in order among themselves, and behind what has a number already by so much.
    const shift = Math.max(0, before + 1 - first);
    await table(strapi, trx, JOURNAL_TABLE)
      .whereIn('id', ids)
      .update({ number: trx.raw('id + ?', [shift]) });
    const last = (ids.at(-1) as number) + shift;
    await head(strapi, trx).update({ value: String(last) });
    return last;
  });

/**
 * Gives numbers to events whose transaction has committed, at most 1,000. Numbers follow the commits
 * by which they are given, not those of the events: an event that was long in its transaction gets a
 * number that nobody has read past.
 * @returns the last number that was given
 */
export const numberEvents = async (strapi: Core.Strapi): Promise<number> => {
  const executor = await currentExecutor(strapi);
  const some = (await unnumbered(strapi, executor).limit(1).pluck('id')) as number[];
  return some.length > 0
    ? withTransientRetry(() => giveNumbers(strapi))
    : lastOf(head(strapi, executor));
};

/** Makes the row of the last number, at the first boot. */
export const prepareNumbering = async (strapi: Core.Strapi): Promise<void> => {
  await table(strapi, await currentExecutor(strapi), SITE_TABLE)
    .insert({ ...HEAD, value: '0' })
    .onConflict('name')
    .ignore();
};
