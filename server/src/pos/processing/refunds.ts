import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { type Executor, table } from '../../database/connection';
import { nextTurn } from '../../runtime/event-loop';
import { type ConnectionRow, type PosEventRow, POS_EVENTS_TABLE } from '../tables';
import { isSale, openContext, type ProcessingContext } from './processing-context';
import { type Reach, reachOf, type Times } from './refund-reach';

/**
 * A *refund group* is what is settled together: the sales of one id and the refunds that name it,
 * on connections that may know of each other, of one mode (rules/settle-refunds.ts). Of its members
 * some are in the batch that is being applied; those that were processed before are *relatives* of
 * these. How many of the relatives have to be read again is its *reach*.
 */
export interface RefundGroup {
  key: string;
  /** Of the sale's id. */
  digest: string;
  /** Its members in the batch. */
  batch: ProcessingContext[];
  reach: Reach;
}

type Connections = ReadonlyMap<number, ConnectionRow>;

const CHUNK = 200;
/** Bodies of relatives are read this many at a time, and kept no longer than it takes. */
const BODIES = 20;

/** Adds to the list that a map has under a key. */
export const addTo = <K, V>(lists: Map<K, V[]>, key: K, value: V): void => {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
};

type GroupColumns = Pick<PosEventRow, 'mode' | 'family_digest'>;

/** The key of the group that a sale or refund belongs to. */
export const refundGroupKey = (row: GroupColumns, connection: ConnectionRow): string =>
  `${row.mode}/${connection.group_digest ?? `connection ${connection.id}`}/${row.family_digest}`;

/** Members by the key of their group; an inventory message belongs to none. */
export const byRefundGroup = (
  works: readonly ProcessingContext[]
): Map<string, ProcessingContext[]> => {
  const members = new Map<string, ProcessingContext[]>();
  for (const work of works) {
    if (work.row.family_digest !== null)
      addTo(members, refundGroupKey(work.row, work.connection), work);
  }
  return members;
};

const digestsOf = (works: readonly ProcessingContext[]): string[] => [
  ...new Set(works.flatMap(({ row }) => row.family_digest ?? [])),
];

/**
 * Rows of relatives, by the ids of their sales. An id may be of several groups: whoever asks compares
 * keys.
 */
const processedRows = async <Row>(
  strapi: Core.Strapi,
  trx: Executor,
  digests: readonly string[],
  connections: Connections,
  narrow: (query: Knex.QueryBuilder) => Knex.QueryBuilder
): Promise<Row[]> => {
  const rows: Row[] = [];
  for (let start = 0; start < digests.length; start += CHUNK) {
    const query = table(strapi, trx, POS_EVENTS_TABLE)
      .whereIn('family_digest', digests.slice(start, start + CHUNK))
      .whereIn('connection_id', [...connections.keys()])
      .whereNotIn('state', ['pending', 'failed']);
    for (const row of (await narrow(query)) as Row[]) rows.push(row);
  }
  return rows;
};

type SaleHead = Pick<PosEventRow, 'id' | 'connection_id' | 'family_digest' | 'mode' | 'refunded'>;

/** The sales that were processed before, by group; without their bodies. */
const saleHeads = async (
  strapi: Core.Strapi,
  trx: Executor,
  digests: readonly string[],
  connections: Connections
): Promise<Map<string, SaleHead[]>> => {
  const heads = new Map<string, SaleHead[]>();
  const rows = await processedRows<SaleHead>(strapi, trx, digests, connections, (query) =>
    query.select('id', 'connection_id', 'family_digest', 'mode', 'refunded').where({ kind: 'sale' })
  );
  for (const row of rows) {
    const connection = connections.get(Number(row.connection_id));
    if (connection) addTo(heads, refundGroupKey(row, connection), row);
  }
  return heads;
};

/**
 * The refund groups of the batch, and the reach of each. The lines of the batch must be resolved,
 * and its connections and those of their groups locked: nobody else then adds to them.
 */
export const planRefundGroups = async (
  strapi: Core.Strapi,
  trx: Executor,
  works: readonly ProcessingContext[],
  connections: Connections,
  times: Times
): Promise<RefundGroup[]> => {
  const sales = await saleHeads(strapi, trx, digestsOf(works), connections);
  const own = new Set(works.map(({ id }) => id));
  return [...byRefundGroup(works)].map(([key, batch]) => {
    const before = (sales.get(key) ?? []).filter(({ id }) => !own.has(Number(id)));
    const digest = batch[0]?.row.family_digest ?? '';
    return { key, digest, batch, reach: reachOf(batch, before, times) };
  });
};

const relativeIds = async (
  strapi: Core.Strapi,
  trx: Executor,
  digests: readonly string[],
  connections: Connections,
  which: 'allocated' | 'all'
): Promise<number[]> => {
  const rows = await processedRows<{ id: number }>(strapi, trx, digests, connections, (query) => {
    query.select('id').orderBy('id');
    if (which === 'all') return query;
    return query.where((allocated) => {
      allocated.where({ kind: 'sale' }).orWhereNull('took').orWhere('took', '>', 0);
    });
  });
  return rows.map(({ id }) => Number(id));
};

/** Hundreds of relatives with all that tills sent beside the lines would fill the memory. */
const withoutBody = (work: ProcessingContext): ProcessingContext => ({
  ...work,
  row: { ...work.row, body: '' },
  record: isSale(work) ? { ...work.record, customer: null, meta: null } : work.record,
});

/** The relatives that the reach of the groups asks for. */
export const loadRelatives = async (
  strapi: Core.Strapi,
  trx: Executor,
  groups: readonly RefundGroup[],
  connections: Connections
): Promise<ProcessingContext[]> => {
  const own = new Set(groups.flatMap(({ batch }) => batch.map(({ id }) => id)));
  const relatives: ProcessingContext[] = [];
  for (const which of ['allocated', 'all'] as const) {
    const reached = groups.filter(({ reach }) => reach.relatives === which);
    const keys = new Set(reached.map(({ key }) => key));
    const digests = [...new Set(reached.map(({ digest }) => digest))];
    const found = await relativeIds(strapi, trx, digests, connections, which);
    const ids = found.filter((id) => !own.has(id));
    for (let start = 0; start < ids.length; start += BODIES) {
      const rows = (await table(strapi, trx, POS_EVENTS_TABLE)
        .select('*')
        .whereIn('id', ids.slice(start, start + BODIES))) as PosEventRow[];
      for (const row of rows) {
        const connection = connections.get(Number(row.connection_id));
        if (!connection || !keys.has(refundGroupKey(row, connection))) continue;
        relatives.push(withoutBody(openContext(row, connection, false)));
      }
      await nextTurn();
    }
  }
  return relatives;
};
