import type { Core } from '@strapi/strapi';
import type {
  ClosingComparison,
  ClosingSummary,
  PosEventDetail,
  RelatedRecord,
} from '../../../../shared/contracts/pos';
import { type Executor, table } from '../../database/connection';
import { isoTime } from '../../runtime/iso-time';
import { PURCHASES_TABLE, type PurchaseRow } from '../customers/purchases-table';
import { readCounted } from '../money/rollups';
import {
  type PosClosingRow,
  type PosEventRow,
  POS_CLOSINGS_TABLE,
  POS_EVENTS_TABLE,
} from '../tables';

/** How many refunds of one sale are named. */
const REFUNDS_NAMED = 50;

type Relative = Pick<PosEventRow, 'id' | 'connection_id' | 'external_id' | 'counted'>;

const related = ({ id, external_id }: Relative): RelatedRecord => ({ id: Number(id), external_id });

const saleOf = ({ counted }: Relative): number | null =>
  counted === null ? null : readCounted(counted, { kind: 'refund', connection: 0, at: 0 }).sale;

/** Others of its refund group: of its own connection, and those that money says belong to it. */
const readRelatives = async (
  strapi: Core.Strapi,
  executor: Executor,
  row: PosEventRow,
  kind: 'sale' | 'refund'
): Promise<RelatedRecord[]> => {
  if (row.family_digest === null) return [];
  const rows = (await table(strapi, executor, POS_EVENTS_TABLE)
    .select('id', 'connection_id', 'external_id', 'counted')
    .where({ family_digest: row.family_digest, kind })
    .orderBy('id')
    .limit(REFUNDS_NAMED)) as Relative[];
  const isOwn = (one: Relative): boolean => Number(one.connection_id) === Number(row.connection_id);
  const belongs = (one: Relative): boolean =>
    kind === 'refund' ? saleOf(one) === Number(row.id) : saleOf(row) === Number(one.id);
  return rows.filter((one) => isOwn(one) || belongs(one)).map(related);
};

/** The sale of a refund, the refunds of a sale, and the contact of either. */
export const relationsOf = async (
  strapi: Core.Strapi,
  executor: Executor,
  row: PosEventRow
): Promise<Pick<PosEventDetail, 'contact' | 'sale' | 'refunds'>> => {
  const purchase = (await table(strapi, executor, PURCHASES_TABLE)
    .select('contact_id')
    .where({ event_id: row.id })
    .first()) as Pick<PurchaseRow, 'contact_id'> | undefined;
  const [sale] = row.kind === 'refund' ? await readRelatives(strapi, executor, row, 'sale') : [];
  return {
    contact: purchase?.contact_id ? { id: purchase.contact_id } : null,
    sale: sale ?? null,
    refunds: row.kind === 'sale' ? await readRelatives(strapi, executor, row, 'refund') : [],
  };
};

export interface StoredClosing {
  comparison: ClosingComparison;
  summary: ClosingSummary;
}

/** How closings compare, by the ids of their events. */
export const closingsOf = async (
  strapi: Core.Strapi,
  executor: Executor,
  ids: readonly number[]
): Promise<Map<number, StoredClosing>> => {
  if (ids.length === 0) return new Map();
  const rows = (await table(strapi, executor, POS_CLOSINGS_TABLE).whereIn('event_id', [
    ...ids,
  ])) as PosClosingRow[];
  return new Map(
    rows.map((row): [number, StoredClosing] => {
      const comparison = JSON.parse(row.result) as ClosingComparison;
      const { missing = [], unexpected = [], unexpected_count: all, differences } = comparison;
      const summary = {
        from: isoTime(Number(row.from_at)),
        to: isoTime(Number(row.to_at)),
        missing: missing.length,
        unexpected: all ?? unexpected.length,
        ...(all !== undefined && { unexpected_listed: unexpected.length }),
        differences,
      };
      return [Number(row.event_id), { comparison, summary }];
    })
  );
};
