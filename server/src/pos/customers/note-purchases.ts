import type { Core } from '@strapi/strapi';
import type { CustomersService } from '../../../../shared/contracts/customers';
import { type Executor, table } from '../../database/connection';
import { isSale, type ProcessingContext } from '../processing/processing-context';
import { getRecordStore } from '../processing/record-store';
import { PURCHASES_TABLE, type PurchaseRow } from './purchases-table';

/** A site without the CRM has no such service. */
export const customersOf = (strapi: Core.Strapi): CustomersService | undefined =>
  strapi.service('plugin::switchboard.customers') as unknown as CustomersService | undefined;

const CHUNK = 200;

const namesCustomer = (work: ProcessingContext): boolean =>
  isSale(work) &&
  work.row.mode === 'live' &&
  work.row.processed_at === null &&
  work.record.customer !== null &&
  (work.connection.customers ?? 'match') !== 'ignore';

/**
 * Notes, in the transaction that processes them, which sales are to be attached to a contact, and
 * which attached ones come to another sum.
 * @param repriced  sales whose refunds cost otherwise now
 * @returns whether anything is to be done
 */
export const notePurchases = async (
  strapi: Core.Strapi,
  trx: Executor,
  batch: readonly ProcessingContext[],
  repriced: readonly number[]
): Promise<boolean> => {
  if (!customersOf(strapi)) return false;
  const dueAt = getRecordStore(strapi).now();
  const rows = batch.filter(namesCustomer).map(({ id }): Omit<PurchaseRow, 'id'> => ({
    event_id: id,
    sale_id: id,
    contact_id: null,
    currency: null,
    applied: null,
    due_at: dueAt,
    tries: 0,
    error: null,
  }));
  for (let start = 0; start < rows.length; start += CHUNK) {
    await table(strapi, trx, PURCHASES_TABLE).insert(rows.slice(start, start + CHUNK));
  }
  let woken = 0;
  for (let start = 0; start < repriced.length; start += CHUNK) {
    woken += await table(strapi, trx, PURCHASES_TABLE)
      .whereIn('event_id', repriced.slice(start, start + CHUNK))
      .update({ due_at: dueAt, tries: 0 });
  }
  return rows.length > 0 || woken > 0;
};
