import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { currentExecutor, type Executor, inTransaction, table } from '../../database/connection';
import { withTransientRetry } from '../../database/retry';
import { createTimeSlice } from '../../runtime/event-loop';
import { type Big, ITEMS_TABLE, LEVELS_TABLE } from '../tables';
import { markChanged } from '../catalogue-changes';
import { beginEpoch } from './epochs';
import {
  CATALOGUE_HEAD_TABLE,
  CATALOGUE_TABLE,
  type ChangeRow,
  CHANGES_TABLE,
  HEAD_ID,
  RETIRED_SKUS_TABLE,
  type RetiredRow,
} from './tables';

/** Changes that are numbered in one transaction. */
const AT_ONCE = 1000;
const INSERT_CHUNK = 100;

export interface Numbered {
  /** The last number that was given. */
  last: number;
  /** Changes may be waiting for a number still. */
  more: boolean;
}

const head = (strapi: Core.Strapi, executor: Executor): Knex.QueryBuilder =>
  table(strapi, executor, CATALOGUE_HEAD_TABLE).where({ id: HEAD_ID });

const lastOf = async (query: Knex.QueryBuilder): Promise<number> => {
  const row = (await query.select('number').first()) as { number: Big } | undefined;
  return Number(row?.number ?? 0);
};

const waiting = (strapi: Core.Strapi, executor: Executor): Knex.QueryBuilder =>
  table(strapi, executor, CHANGES_TABLE).select('id', 'item_id').orderBy('id');

/**
 * Numbers old articles before the items that they became: a till that looks goods up by their barcode
 * must not lose the new one with the old.
 * @returns the last number that was given
 */
const numberRetired = async (
  strapi: Core.Strapi,
  trx: Executor,
  before: number
): Promise<number> => {
  const rows = (await table(strapi, trx, RETIRED_SKUS_TABLE)
    .select('id')
    .whereNull('number')
    .orderBy('id')
    .limit(AT_ONCE)) as Pick<RetiredRow, 'id'>[];
  for (const [index, { id }] of rows.entries()) {
    await table(strapi, trx, RETIRED_SKUS_TABLE)
      .where({ id })
      .update({ number: before + index + 1 });
  }
  return before + rows.length;
};

/** Processes that have begun an epoch. */
const begun = new WeakSet<Core.Strapi>();

const giveNumbers = async (strapi: Core.Strapi): Promise<Numbered> => {
  const numbered = await inTransaction(strapi, async ({ trx }) => {
    // Until the commit nobody else gives numbers: whoever sees one sees all that are smaller.
    const given = await lastOf(head(strapi, trx).forUpdate());
    const changes = (await waiting(strapi, trx).limit(AT_ONCE)) as ChangeRow[];
    if (changes.length === 0) return { last: given, more: false, isGiven: false };
    if (!begun.has(strapi)) await beginEpoch(strapi, trx, given);
    const before = await numberRetired(strapi, trx, given);
    const items = [...new Set(changes.map(({ item_id: item }) => Number(item)))];
    const numberedAt = Date.now();
    const rows = items.map((item, index) => ({
      item_id: item,
      number: before + index + 1,
      numbered_at: numberedAt,
    }));
    for (let start = 0; start < rows.length; start += INSERT_CHUNK) {
      await table(strapi, trx, CATALOGUE_TABLE)
        .insert(rows.slice(start, start + INSERT_CHUNK))
        .onConflict('item_id')
        .merge(['number', 'numbered_at']);
    }
    const last = before + items.length;
    await head(strapi, trx).update({ number: last });
    const ids = changes.map(({ id }) => id);
    await table(strapi, trx, CHANGES_TABLE).whereIn('id', ids).delete();
    return { last, more: changes.length === AT_ONCE, isGiven: true };
  });
  // Once it is committed.
  if (numbered.isGiven) begun.add(strapi);
  return numbered;
};

/**
 * Gives a number to items whose change was committed and has none yet, a bounded part of them. Numbers
 * follow the commits by which they are given, not those of the changes, so a change that was long in
 * its transaction gets one that nobody has read past.
 */
export const numberChanges = async (strapi: Core.Strapi): Promise<Numbered> => {
  const executor = await currentExecutor(strapi);
  const some = (await waiting(strapi, executor).limit(1)) as ChangeRow[];
  if (some.length > 0) return withTransientRetry(() => giveNumbers(strapi));
  return { last: await lastOf(head(strapi, executor)), more: false };
};

/** All that wait now: they would else gather where no till asks for the catalogue. */
export const numberAll = async (strapi: Core.Strapi): Promise<void> => {
  const slice = createTimeSlice();
  while ((await numberChanges(strapi)).more) if (slice.isOver()) await slice.next();
};

/**
 * Marks items that have no number, and those that were changed after theirs was given: an older
 * version changes items without marking them. Asked at boot.
 */
export const markUnnumbered = async (strapi: Core.Strapi): Promise<void> => {
  const executor = (await currentExecutor(strapi)) as Knex;
  const schema = strapi.db.getSchemaName();
  const named = (name: string): string => (schema ? `${schema}.${name}` : name);
  await table(strapi, executor, CATALOGUE_HEAD_TABLE)
    .insert({ id: HEAD_ID, number: 0 })
    .onConflict('id')
    .ignore();
  // Those that wait for a number already need no second mark.
  const marked = table(strapi, executor, CHANGES_TABLE).select('item_id').whereNotNull('item_id');
  for (let after = 0; ;) {
    const found = (await executor(`${named(ITEMS_TABLE)} as i`)
      .leftJoin(`${named(CATALOGUE_TABLE)} as c`, 'c.item_id', 'i.id')
      .select('i.id')
      .where('i.id', '>', after)
      .whereNotIn('i.id', marked.clone())
      .where((stale) => {
        stale
          .whereNull('c.item_id')
          .orWhere('i.updated_at', '>', executor.ref('c.numbered_at'))
          .orWhereExists(
            executor(`${named(LEVELS_TABLE)} as l`)
              .select('l.id')
              .where('l.item_id', executor.ref('i.id'))
              .where('l.updated_at', '>', executor.ref('c.numbered_at'))
          );
      })
      .orderBy('i.id')
      .limit(AT_ONCE)) as { id: number }[];
    const last = found.at(-1);
    if (!last) return;
    await markChanged(
      strapi,
      executor,
      found.map(({ id }) => Number(id))
    );
    after = Number(last.id);
  }
};
