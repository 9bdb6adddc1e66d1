import type { Core } from '@strapi/strapi';
import { afterCommit, type Executor, inTransaction, table } from '../../database/connection';
import { withTransientRetry } from '../../database/retry';
import { insertRows } from '../../database/insert-rows';
import { findProducts } from '../../stock/products';
import { LEVELS_TABLE, MOVEMENTS_TABLE } from '../../stock/tables';
import { getRecordStore } from '../processing/record-store';
import {
  POS_MAPPED_LINES_TABLE,
  POS_MAPPINGS_TABLE,
  type PosMappingRow,
  WHOLE_RECORD,
} from '../tables';
import { itemsService } from './destinations';
import { wakeMapped } from './mapped-lines';

/**
 * Every record of an item that a mapping made is one of the mapping's. Its lines are written down as they
 * are found to be of it; those that an earlier version found are known by their movements.
 */
const claimRecords = async (
  strapi: Core.Strapi,
  trx: Executor,
  mapping: number,
  item: number
): Promise<void> => {
  const events = (await table(strapi, trx, MOVEMENTS_TABLE)
    .distinct('event_id')
    .whereIn('level_id', table(strapi, trx, LEVELS_TABLE).select('id').where({ item_id: item }))
    .whereNotNull('event_id')
    .whereNotIn(
      'event_id',
      table(strapi, trx, POS_MAPPED_LINES_TABLE).select('event_id').where({ mapping_id: mapping })
    )) as { event_id: number }[];
  await insertRows(
    strapi,
    trx,
    POS_MAPPED_LINES_TABLE,
    events.map(({ event_id: event }) => ({
      mapping_id: mapping,
      event_id: event,
      line: WHOLE_RECORD,
    }))
  );
};

/** Whether the site has a product of its own by an item's SKU: it is for sale without any mapping. */
const isOfProduct = async (strapi: Core.Strapi, trx: Executor, item: number): Promise<boolean> => {
  const { sku } = await itemsService(strapi).getItem(item);
  return (await findProducts(strapi, trx, [sku], [])).length > 0;
};

/**
 * The mapping holds no more; its records are worked on again. The item that it made or brought back is
 * archived, unless it is a product's that it made. One that was there before has a history of its own,
 * which stays: of that item only those lines are taken back that the mapping decided.
 * @returns the records that are worked on again
 */
export const endMapping = async (
  strapi: Core.Strapi,
  trx: Executor,
  row: PosMappingRow
): Promise<number[]> => {
  const id = Number(row.id);
  await table(strapi, trx, POS_MAPPINGS_TABLE)
    .where({ id })
    .update({ active_digest: null, undone_at: Date.now() });
  const made = row.item_id !== null && row.made_item ? Number(row.item_id) : null;
  if (row.revived_item || (made !== null && !(await isOfProduct(strapi, trx, made)))) {
    await itemsService(strapi).archiveItem(Number(row.item_id));
  }
  if (made !== null) await claimRecords(strapi, trx, id, made);
  const records = await wakeMapped(strapi, trx, id);
  afterCommit(strapi, () => {
    // Once more: a record may have been applied by it meanwhile.
    getRecordStore(strapi).detached(() =>
      withTransientRetry(() =>
        inTransaction(strapi, ({ trx: later }) => wakeMapped(strapi, later, id))
      ).catch(() =>
        strapi.log.warn(`switchboard: the records of the mapping ${id} were not looked at again`)
      )
    );
  });
  return records;
};
