import type { Core } from '@strapi/strapi';
import {
  HANDLINGS_KEPT,
  type RecordAction,
  type RecordHandling,
} from '../../../../shared/contracts/pos';
import { type Executor, table } from '../../database/connection';
import { isoTime } from '../../runtime/iso-time';
import { type PosEventRow, POS_EVENTS_TABLE } from '../tables';

/** As it is stored; `at` in epoch milliseconds. */
type StoredHandling = Omit<RecordHandling, 'at'> & { at: number };

type HandledRow = Pick<PosEventRow, 'id' | 'by_hand'>;

const storedOf = ({ by_hand: stored }: HandledRow): StoredHandling[] =>
  JSON.parse(stored ?? '[]') as StoredHandling[];

/** What was done with a record by hand, oldest first. */
export const handlingsOf = (row: HandledRow): RecordHandling[] =>
  storedOf(row).map(({ action, made_by, at }) => ({ action, made_by, at: isoTime(at) }));

/**
 * Writes down who did what with a record, beside what they did.
 * @param row  locked by the transaction
 * @param madeBy  who does it, as lists name an admin user
 */
export const noteHandling = async (
  strapi: Core.Strapi,
  trx: Executor,
  row: HandledRow,
  action: RecordAction,
  madeBy: string | null
): Promise<void> => {
  const handling: StoredHandling = { action, made_by: madeBy, at: Date.now() };
  const kept = [...storedOf(row), handling].slice(-HANDLINGS_KEPT);
  await table(strapi, trx, POS_EVENTS_TABLE)
    .where({ id: row.id })
    .update({ by_hand: JSON.stringify(kept) });
};
