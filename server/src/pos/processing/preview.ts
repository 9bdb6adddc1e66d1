import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { getOptions } from '../../config';
import type { PosEventRow } from '../tables';
import { connectionsOf, groupsOf } from '../connections';
import type { ProcessingContext } from './processing-context';
import { getRecordStore } from './record-store';
import { workOut } from './work-out';

/** An id that no event has yet: of two counts of one time, the later arrival wins. */
export const PREVIEW_ID = 2_147_483_647;

/**
 * What a record that is not stored would come to if it were processed now, by the engine itself.
 * Writes nothing.
 * @param row  as it would be stored, with the id `PREVIEW_ID`
 */
export const previewRecord = async (
  strapi: Core.Strapi,
  trx: Knex.Transaction,
  row: PosEventRow
): Promise<ProcessingContext> => {
  const ids = [Number(row.connection_id)];
  const groups = await groupsOf(strapi, trx, ids);
  const connections = await connectionsOf(strapi, trx, ids, groups, { lock: false });
  const times = {
    nowMs: getRecordStore(strapi).now(),
    graceMs: getOptions(strapi).pos.refundGraceHours * 3_600_000,
  };
  const { batch } = await workOut(strapi, trx, [row], connections, times, { preview: true });
  const [work] = batch;
  if (!work) throw new Error('The connection of a record is gone.');
  return work;
};
