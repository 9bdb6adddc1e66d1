import type { TableModel } from '../room';

export const WEBHOOKS_TABLE = 'switchboard_webhooks';
export const DELIVERIES_TABLE = 'switchboard_deliveries';

/** Times are epoch milliseconds. `events` is a JSON array; `secret` is encrypted with the host's key. */
export const webhookTable: TableModel = {
  uid: 'plugin::switchboard.webhook',
  singularName: 'switchboard_webhook',
  tableName: WEBHOOKS_TABLE,
  attributes: {
    id: { type: 'increments' },
    name: { type: 'string' },
    url: { type: 'text' },
    events: { type: 'text' },
    active: { type: 'boolean' },
    secret: { type: 'text' },
    disabled_reason: { type: 'string' },
    disabled_at: { type: 'biginteger' },
    consecutive_failures: { type: 'integer' },
    created_at: { type: 'biginteger' },
    updated_at: { type: 'biginteger' },
  },
};

/**
 * `due_at` and `owner` belong to the queue (`queue/database-engine.ts`); `next_attempt_at` is what
 * the owner of the site is shown. `attempts` is a JSON array, newest last.
 */
export const deliveryTable: TableModel = {
  uid: 'plugin::switchboard.delivery',
  singularName: 'switchboard_delivery',
  tableName: DELIVERIES_TABLE,
  attributes: {
    id: { type: 'increments' },
    delivery_id: { type: 'string' },
    webhook_id: { type: 'integer' },
    event: { type: 'string' },
    status: { type: 'string' },
    tries: { type: 'integer' },
    is_test: { type: 'boolean' },
    due_at: { type: 'biginteger' },
    owner: { type: 'string' },
    next_attempt_at: { type: 'biginteger' },
    created_at: { type: 'biginteger' },
    finished_at: { type: 'biginteger' },
    error: { type: 'string' },
    url: { type: 'text' },
    body: { type: 'text' },
    attempts: { type: 'text' },
  },
  indexes: [
    { name: 'sb_delivery_uid', columns: ['delivery_id'], type: 'unique' },
    { name: 'sb_delivery_due', columns: ['webhook_id', 'due_at'] },
    { name: 'sb_delivery_log', columns: ['webhook_id', 'status', 'id'] },
    { name: 'sb_delivery_new', columns: ['webhook_id', 'id'] },
    { name: 'sb_delivery_end', columns: ['finished_at'] },
  ],
};

/** A row of `switchboard_webhooks`, as the database driver hands it out. */
export interface WebhookRow {
  id: number;
  name: string;
  url: string;
  events: string;
  active: boolean | number;
  secret: string;
  disabled_reason: string | null;
  disabled_at: number | string | null;
  consecutive_failures: number;
  created_at: number | string;
  updated_at: number | string;
}

/** A row of `switchboard_deliveries`, as the database driver hands it out. */
export interface DeliveryRow {
  id: number;
  delivery_id: string;
  webhook_id: number;
  event: string;
  status: 'pending' | 'sent' | 'failed';
  tries: number;
  is_test: boolean | number;
  due_at: number | string | null;
  owner: string | null;
  next_attempt_at: number | string | null;
  created_at: number | string;
  finished_at: number | string | null;
  error: string | null;
  url: string;
  body: string;
  attempts: string;
}
