import type { Knex } from 'knex';
import type { Core } from '@strapi/strapi';
import { RECORDS_SEARCHED } from '../../../../shared/contracts/pos';
import { minorDigits } from '../../../../shared/currencies';
import { type Executor, table } from '../../database/connection';
import { createTimeSlice } from '../../runtime/event-loop';
import { isoTime } from '../../runtime/iso-time';
import { externalDigest } from '../intake/submission';
import { recordMatcher } from '../rules/record-match';
import { moneyOf } from '../serialize';
import { type PosEventRow, POS_EVENTS_TABLE } from '../tables';

/** No more of bodies than this is looked into, though these be fewer records. */
const BYTES_SEARCHED = 64 * 1024 * 1024;
const CHUNK = 50;

type Row = Pick<PosEventRow, 'id' | 'kind' | 'external_id' | 'counted' | 'received_at' | 'body'>;

export interface FoundRecords {
  /** Newest first. */
  ids: number[];
  /** When the oldest record was received that was looked at; null: there was none. */
  searchedFrom: string | null;
}

/**
 * Looks for a text in the newest records that filters leave. A whole id is found however old it is.
 * @param filtered  of the log's table, without columns and order
 */
export const searchRecords = async (
  strapi: Core.Strapi,
  executor: Executor,
  filtered: Knex.QueryBuilder,
  search: string
): Promise<FoundRecords> => {
  const matches = recordMatcher(search, minorDigits);
  const byId = (await filtered
    .clone()
    .where({ external_digest: externalDigest(search) })
    .select('id')) as { id: number }[];
  const found = new Set(byId.map(({ id }) => Number(id)));
  const slice = createTimeSlice();
  let oldest: Row | undefined;
  let bytes = 0;
  for (let seen = 0; seen < RECORDS_SEARCHED && bytes < BYTES_SEARCHED; seen += CHUNK) {
    const query = filtered.clone().select('id').orderBy('id', 'desc').limit(CHUNK);
    if (oldest) query.where('id', '<', oldest.id);
    const ids = ((await query) as { id: number }[]).map(({ id }) => Number(id));
    const rows = (await table(strapi, executor, POS_EVENTS_TABLE)
      .select('id', 'kind', 'external_id', 'counted', 'received_at', 'body')
      .whereIn('id', ids)
      .orderBy('id', 'desc')) as Row[];
    for (const row of rows) {
      // A closing's body is nothing but ids of others.
      const body = row.kind === 'closing' ? null : row.body;
      bytes += row.body.length;
      if (matches({ externalId: row.external_id, body, money: moneyOf(row) })) {
        found.add(Number(row.id));
      }
      if (slice.isOver()) await slice.next();
    }
    oldest = rows.at(-1) ?? oldest;
    if (ids.length < CHUNK) break;
  }
  return {
    ids: [...found].sort((a, b) => b - a),
    searchedFrom: oldest ? isoTime(Number(oldest.received_at)) : null,
  };
};
