import type { PlainTable } from '../../database/tables/plain-tables';
import type { Big } from '../../stock/tables';

export const PURCHASES_TABLE = 'switchboard_pos_purchases';

/**
 * Live sales that name a customer, and refunds of those that have a contact. `contact_id` is null while
 * nobody was looked for, and where nobody was found. `applied` is what a contact's lifetime value has of
 * the sale, less its refunds, in minor units of `currency`; null: it has nothing of it, and what it has is
 * of another currency. `due_at` says that it is to be looked at
 * (epoch milliseconds); null: nothing has changed since. `tries` is how often in a row it could not be
 * attached, and `error` why.
 */
export const purchasesTable: PlainTable = {
  tableName: PURCHASES_TABLE,
  attributes: {
    id: { type: 'increments' },
    event_id: { type: 'integer' },
    sale_id: { type: 'integer' },
    contact_id: { type: 'string' },
    currency: { type: 'string', column: { args: [3] } },
    applied: { type: 'text' },
    due_at: { type: 'biginteger' },
    tries: { type: 'integer' },
    error: { type: 'text' },
  },
  indexes: [
    { name: 'sb_purchase_event', columns: ['event_id'], type: 'unique' },
    { name: 'sb_purchase_sale', columns: ['sale_id'] },
    { name: 'sb_purchase_contact', columns: ['contact_id', 'event_id'] },
    { name: 'sb_purchase_due', columns: ['due_at'] },
  ],
};

export interface PurchaseRow {
  id: number;
  event_id: number;
  sale_id: number;
  contact_id: string | null;
  currency: string | null;
  applied: string | null;
  due_at: Big | null;
  tries: number | null;
  error: string | null;
}
