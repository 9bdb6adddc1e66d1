import type { RecoveryState } from '../../../../shared/contracts/webhooks';
import type { PlainTable } from '../../database/tables/plain-tables';

export const RECOVERIES_TABLE = 'switchboard_recoveries';
export const RECOVERY_ITEMS_TABLE = 'switchboard_recovery_items';

/**
 * Recoveries, and previews of them until they are started. `token` is the preview's id; `kind` says
 * which source finds its items, `filter` (JSON) what that is asked for, and `boundary` up to which row it
 * looks. Counts are as in the answers; `collected_at` is when all its items were there, `moved_at` when
 * one of them last changed. `due_at` is when it is to be looked at; null: never again. Times are epoch
 * milliseconds of the database's clock.
 */
export const recoveriesTable: PlainTable = {
  tableName: RECOVERIES_TABLE,
  attributes: {
    id: { type: 'increments' },
    token: { type: 'string', column: { args: [36] } },
    kind: { type: 'string', column: { args: [20] } },
    state: { type: 'string', column: { args: [20] } },
    filter: { type: 'text' },
    boundary: { type: 'biginteger' },
    matching: { type: 'integer' },
    queued: { type: 'integer' },
    sent: { type: 'integer' },
    failed: { type: 'integer' },
    created_at: { type: 'biginteger' },
    collected_at: { type: 'biginteger' },
    moved_at: { type: 'biginteger' },
    finished_at: { type: 'biginteger' },
    due_at: { type: 'biginteger' },
  },
  indexes: [
    { name: 'sb_recovery_token', columns: ['token'], type: 'unique' },
    { name: 'sb_recovery_due', columns: ['due_at'] },
  ],
};

/**
 * What a recovery has to send. `ref` is what its source knows it by and `at` its time, by which the oldest
 * are queued first; `delivery_id` is the id of the delivery's row, null where its source makes that
 * when it queues it; `tries` are the attempts that this had then.
 */
export const recoveryItemsTable: PlainTable = {
  tableName: RECOVERY_ITEMS_TABLE,
  attributes: {
    id: { type: 'increments' },
    recovery_id: { type: 'integer' },
    ref: { type: 'integer' },
    webhook_id: { type: 'integer' },
    at: { type: 'biginteger' },
    delivery_id: { type: 'integer' },
    state: { type: 'string', column: { args: [20] } },
    tries: { type: 'integer' },
  },
  indexes: [
    { name: 'sb_recovery_item', columns: ['recovery_id', 'ref'], type: 'unique' },
    { name: 'sb_recovery_next', columns: ['recovery_id', 'state', 'webhook_id', 'at', 'ref'] },
  ],
};

/** `skipped`: when it was its turn there was nothing to send again any more. */
export type ItemState = 'waiting' | 'queued' | 'sent' | 'failed' | 'skipped';

/** What finds the items of a recovery. */
export type RecoveryKind = 'deliveries' | 'journal';

/** A row of `switchboard_recoveries`, as the database driver hands it out. */
export interface RecoveryRow {
  id: number;
  token: string;
  kind: RecoveryKind;
  state: RecoveryState | 'preview';
  filter: string;
  boundary: number | string;
  matching: number;
  queued: number;
  sent: number;
  failed: number;
  created_at: number | string;
  collected_at: number | string | null;
  moved_at: number | string;
  finished_at: number | string | null;
  due_at: number | string | null;
}

/** A row of `switchboard_recovery_items`, as the database driver hands it out. */
export interface RecoveryItemRow {
  id: number;
  recovery_id: number;
  ref: number;
  webhook_id: number;
  at: number | string;
  delivery_id: number | null;
  state: ItemState;
  tries: number | null;
}
