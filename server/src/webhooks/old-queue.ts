import type { OldQueue } from '../database/tables/old-queues';
import type { NewRow } from '../queue/queue';
import { DELIVERIES_TABLE, type DeliveryRow } from './tables';
import { type DeliveryStore, PLACED_COLUMNS, type PlacedRow } from './deliveries/store';

/** The columns of the queue in a delivery's row before version 0.3. */
type OldRow = PlacedRow &
  Pick<DeliveryRow, 'subject_type' | 'subject_id'> & {
    /** Epoch milliseconds; the end of the lease where somebody held it; null: it was due for nobody. */
    due_at: number | string | null;
    /** The lease's token, with when the delivery was due before it: `<token>/<time>`. */
    owner: string | null;
    /** The record whose deliveries go one after the other. */
    line: string | null;
  };

/** When deliveries were due that waited for a module, or for an earlier one of their record. */
const PARKED_UNTIL = 253_402_300_799_999;
const HELD_UNTIL = PARKED_UNTIL - 1000;

const placeOf = ({ due_at: dueAt, owner }: OldRow) => {
  if (dueAt === null) return {};
  if (Number(dueAt) === PARKED_UNTIL) return { state: 'parked' as const };
  // The first claim holds it again, unless what it waited for has ended.
  if (Number(dueAt) === HELD_UNTIL) return { state: 'ready' as const };
  const [, before] = /\/(\d+)$/.exec(owner ?? '') ?? [];
  return { state: 'ready' as const, dueAt: Number(before ?? dueAt) };
};

/** The queue of deliveries in the columns `due_at`, `owner` and `line` of the log. */
export const oldDeliveryQueue = (store: DeliveryStore): OldQueue<NewRow> => ({
  name: 'delivery_queue',
  tableName: DELIVERIES_TABLE,
  columns: ['webhook_id_if_due_at', 'webhook_id_if_line', ...['line', 'owner', 'due_at']],
  indexes: ['sb_delivery_waiting', 'sb_delivery_line', 'sb_delivery_due'],
  tables: ['switchboard_line_ends', 'switchboard_webhook_paces', 'switchboard_manual_requests'],
  insert: (tx, rows) => store.queue.insert(tx, rows, 'ignore'),
  async read(tx, after, limit) {
    const rows = (await tx
      .table(DELIVERIES_TABLE)
      .select(...PLACED_COLUMNS, 'subject_type', 'subject_id', 'due_at', 'owner', 'line')
      .where('id', '>', after)
      .andWhere((notDone) => {
        notDone.whereNotNull('due_at').orWhere({ status: 'failed' }).orWhere({ is_test: true });
      })
      .orderBy('id')
      .limit(limit)) as OldRow[];
    return rows.map((row) => ({
      ...store.queued(row),
      ...placeOf(row),
      orderingKey: row.line === null ? null : `${row.subject_type}:${row.subject_id}`,
    }));
  },
});
