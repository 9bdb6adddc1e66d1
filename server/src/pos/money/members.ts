import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { type Executor, table } from '../../database/connection';
import { nextTurn } from '../../runtime/event-loop';
import { addTo, refundGroupKey } from '../processing/refunds';
import type { RefundRecord, SaleRecord } from '../rules/records';
import {
  type PricedGroup,
  priceRefunds,
  type RefundToPrice,
  type SoldMoney,
} from '../rules/refund-money';
import { readRecord } from '../rules/validate';
import { type ConnectionRow, type PosEventRow, POS_EVENTS_TABLE } from '../tables';

/** Columns of a sale or refund that its money is worked out from, beside its body. */
const COLUMNS = [
  'id',
  'kind',
  'connection_id',
  'external_id',
  'family_digest',
  'mode',
  'effective_at',
  'received_at',
  'occurred_ms',
  'items',
  'counted',
  'money_left',
] as const satisfies readonly (keyof PosEventRow)[];

export type MoneyRow = Pick<PosEventRow, (typeof COLUMNS)[number]>;

/** A sale or refund whose body was read; without what else a till sends. */
export interface MoneyMember {
  row: MoneyRow;
  record: Pick<SaleRecord, 'kind' | 'currency' | 'total' | 'lines'> | RefundMoneyRecord;
  /** For each line the item it was found to be. */
  items: (number | null)[];
}

type RefundMoneyRecord = Pick<RefundRecord, 'kind' | 'currency' | 'total' | 'lines'>;

export type Connections = ReadonlyMap<number, ConnectionRow>;

const CHUNK = 200;
/** Bodies are read this many at a time, and kept no longer than it takes. */
const BODIES = 20;

export const memberOf = (
  row: MoneyRow,
  record: SaleRecord | RefundRecord,
  items: (number | null)[]
): MoneyMember =>
  record.kind === 'sale'
    ? {
        row,
        record: {
          kind: 'sale',
          currency: record.currency,
          total: record.total,
          lines: record.lines,
        },
        items,
      }
    : {
        row,
        record: {
          kind: 'refund',
          currency: record.currency,
          total: record.total,
          lines: record.lines,
        },
        items,
      };

const read = ({ body, ...row }: MoneyRow & Pick<PosEventRow, 'body'>): MoneyMember[] => {
  if (row.kind !== 'sale' && row.kind !== 'refund') return [];
  const context = { receivedAtMs: Number(row.received_at) };
  const reading = readRecord(row.kind, Buffer.from(body, 'utf8'), context);
  if (!reading.ok) return [];
  const items = JSON.parse(row.items ?? '[]') as (number | null)[];
  return [memberOf(row, reading.record, items)];
};

/** The sales and refunds of these ids, with what their bodies say of money. */
export const loadMembers = async (
  strapi: Core.Strapi,
  trx: Executor,
  ids: readonly number[]
): Promise<MoneyMember[]> => {
  const members: MoneyMember[] = [];
  for (let start = 0; start < ids.length; start += BODIES) {
    const rows = (await table(strapi, trx, POS_EVENTS_TABLE)
      .select(...COLUMNS, 'body')
      .whereIn('id', ids.slice(start, start + BODIES))
      .orderBy('id')) as (MoneyRow & Pick<PosEventRow, 'body'>)[];
    for (const row of rows) members.push(...read(row));
    await nextTurn();
  }
  return members;
};

/** The sales and refunds of refund groups, without their bodies. */
export const rowsOfGroups = async (
  strapi: Core.Strapi,
  trx: Executor,
  digests: readonly string[],
  connections: Connections,
  narrow: (query: Knex.QueryBuilder) => Knex.QueryBuilder
): Promise<MoneyRow[]> => {
  const found: MoneyRow[] = [];
  for (let start = 0; start < digests.length; start += CHUNK) {
    const query = table(strapi, trx, POS_EVENTS_TABLE)
      .select(...COLUMNS)
      .whereIn('family_digest', digests.slice(start, start + CHUNK))
      .whereIn('connection_id', [...connections.keys()]);
    for (const row of (await narrow(query)) as MoneyRow[]) found.push(row);
  }
  return found;
};

export const keyOfMember = (row: MoneyRow, connections: Connections): string | null => {
  const connection = connections.get(Number(row.connection_id));
  return connection && row.family_digest !== null ? refundGroupKey(row, connection) : null;
};

export const soldOf = ({ row, record }: MoneyMember): SoldMoney[] =>
  record.kind === 'sale'
    ? [{ ...record, id: Number(row.id), connection: Number(row.connection_id) }]
    : [];

export const refundOf = ({ row, record }: MoneyMember): RefundToPrice[] =>
  record.kind === 'refund'
    ? [
        {
          ...record,
          id: Number(row.id),
          connection: Number(row.connection_id),
          effectiveMs: Number(row.effective_at),
          externalId: row.external_id,
        },
      ]
    : [];

/** What the refunds among these members cost; all members of their groups are given. */
export const priceMembers = (
  members: readonly MoneyMember[],
  connections: Connections
): PricedGroup => {
  const groups = new Map<string, MoneyMember[]>();
  for (const member of members) {
    const key = keyOfMember(member.row, connections);
    if (key !== null) addTo(groups, key, member);
  }
  const priced: PricedGroup = { refunds: new Map(), left: new Map() };
  for (const group of groups.values()) {
    const { refunds, left } = priceRefunds(group.flatMap(soldOf), group.flatMap(refundOf));
    for (const [id, one] of refunds) priced.refunds.set(id, one);
    for (const [id, one] of left) priced.left.set(id, one);
  }
  return priced;
};
