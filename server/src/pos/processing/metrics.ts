import type { Metric, MetricSource, Sample } from '../../observability/measures';
import type { EventState } from '../rules/states';
import { type PosEventRow, POS_EVENTS_TABLE } from '../tables';
import type { Db } from '../../database/db';

const WAITING = 'switchboard_pos_records_waiting';
const OLDEST = 'switchboard_pos_record_oldest_waiting_seconds';
const STUCK = 'switchboard_pos_records_stuck';

/** Those that stay until somebody does something, or something else comes. */
const STUCK_STATES = ['held', 'needs_mapping', 'partially_applied', 'failed'] as const;
const MOST = 100_000;

const metrics: readonly Metric[] = [
  { name: WAITING, type: 'gauge', help: 'Records of tills that wait to be applied' },
  { name: OLDEST, type: 'gauge', help: 'How long the oldest of them has been waiting' },
  { name: STUCK, type: 'gauge', help: 'Records of tills that were not wholly applied, by state' },
];

const inState = (db: Db, state: EventState) => db.table(POS_EVENTS_TABLE).where({ state });

const count = async (db: Db, state: EventState): Promise<number> => {
  const some = inState(db, state).select('id').limit(MOST);
  const [row] = (await db.from(some).count({ n: '*' })) as { n: number | string }[];
  return Number(row?.n ?? 0);
};

/** What of the tills' records waits; at most 100,000 of a state are counted. */
export const recordMetrics: MetricSource = {
  metrics,
  async read(app) {
    const db = await app.db.current();
    const oldest = (await inState(db, 'pending').select('received_at').orderBy('id').first()) as
      Pick<PosEventRow, 'received_at'> | undefined;
    const now = app.clock.now();
    const age = Math.max(0, now - Number(oldest?.received_at ?? now));
    const stuck: Sample[] = [];
    for (const state of STUCK_STATES) {
      stuck.push({ labels: { state }, value: await count(db, state) });
    }
    return {
      [WAITING]: [{ value: await count(db, 'pending') }],
      [OLDEST]: [{ value: age / 1000 }],
      [STUCK]: stuck,
    };
  },
};
