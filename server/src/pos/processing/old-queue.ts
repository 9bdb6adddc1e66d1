import type { App } from '../../app';
import { sparseColumn } from '../../database/tables/plain-tables';
import type { OldQueue } from '../../queue/moving';
import type { Queue } from '../../queue/queue';
import { type EventState, WAITING_STATES } from '../rules/states';
import { POS_EVENTS_TABLE, type WokenBy } from '../tables';

/** What versions before 0.3 kept of the queue in a record's row. */
interface OldRow {
  id: number | string;
  connection_id: number | string;
  state: EventState;
  /** Epoch milliseconds; the end of the lease where somebody held it; null: it was due for nobody. */
  due_at: number | string | null;
  /** Of a lease, with when the record was due before it: `<token>/<time>`. */
  owner: string | null;
  woken_by?: WokenBy | null;
  size: number | string;
}

const dueAtOf = ({ due_at: dueAt, owner }: OldRow): number => {
  const [, before] = /\/(\d+)$/.exec(owner ?? '') ?? [];
  return Number(before ?? dueAt);
};

/** The queue of records in the columns `due_at`, `owner` and `woken_by` of the log. */
export const oldRecordQueue = async ({ strapi }: App, queue: Queue): Promise<OldQueue> => {
  // It came during 0.2.
  const hasWoken = await strapi.db.getSchemaConnection().hasColumn(POS_EVENTS_TABLE, 'woken_by');
  return {
    name: 'record_queue',
    tableName: POS_EVENTS_TABLE,
    columns: [sparseColumn('connection_id', 'due_at'), 'owner', 'woken_by', 'due_at'],
    indexes: ['sb_event_waiting', 'sb_event_due'],
    queue,
    async read(tx, after, limit) {
      const rows = (await tx
        .table(POS_EVENTS_TABLE)
        .select('id', 'connection_id', 'state', 'due_at', 'owner', tx.raw('LENGTH(body) AS size'))
        .select(hasWoken ? ['woken_by'] : [])
        .where('id', '>', after)
        .andWhere((notDone) => {
          notDone.whereNotNull('due_at').orWhereIn('state', [...WAITING_STATES, 'failed']);
        })
        .orderBy('id')
        .limit(limit)) as OldRow[];
      const now = queue.now();
      return rows.map((row) => ({
        id: Number(row.id),
        group: Number(row.connection_id),
        dueAt: row.due_at === null ? now : dueAtOf(row),
        state:
          row.due_at !== null
            ? ('ready' as const)
            : row.state === 'failed'
              ? ('ended' as const)
              : ('parked' as const),
        columns: { woken_by: row.woken_by ?? null, size: Number(row.size) },
      }));
    },
  };
};
