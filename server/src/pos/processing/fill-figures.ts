import { withTransientRetry } from '../../database/retry';
import { errorText } from '../../runtime/text';
import { nextTurn } from '../../runtime/event-loop';
import { parseOccurredAt } from '../../stock/rules/occurred-at';
import { markClosings, wakeComparing } from '../closings';
import { connectionsOf, groupsOf } from '../connections';
import { getRecordStore } from '../processing/record-store';
import { CONNECTIONS_TABLE, type PosEventRow, POS_EVENTS_TABLE } from '../tables';
import { countMembers, loadMembers } from '../processing/count-money';
import type { App, Slot } from '../../app';

/**
 * Figures of what earlier versions accepted: their records have no `occurred_ms` yet. Each step takes
 * some of one connection and fills them in, counted and marked in one transaction, so it may be
 * interrupted anywhere and nothing counts twice, on any number of nodes.
 */

const AT_ONCE = 100;
const LOOK_AGAIN = '17 * * * * *';

type Unfilled = Pick<PosEventRow, 'id' | 'state' | 'occurred_at' | 'effective_at'>;

const unfilled = async (app: App, connection: number): Promise<number[]> => {
  const db = await app.db.current();
  const rows = (await db
    .table(POS_EVENTS_TABLE)
    .select('id')
    .where({ connection_id: connection })
    .whereNull('occurred_ms')
    .limit(AT_ONCE)) as { id: number }[];
  return rows.map(({ id }) => Number(id));
};

/** @returns how many records were filled in */
const fillStep = async (app: App, connection: number): Promise<number> => {
  const ids = await unfilled(app, connection);
  if (ids.length === 0) return 0;
  const groups = await groupsOf(await app.db.current(), [connection]);
  await app.db.transaction(async (tx) => {
    const connections = await connectionsOf(tx, [connection], groups, { lock: true });
    const rows = (await tx
      .table(POS_EVENTS_TABLE)
      .select('id', 'state', 'occurred_at', 'effective_at')
      .whereIn('id', ids)
      .whereNull('occurred_ms')) as Unfilled[];
    const times = new Map(
      rows.map(({ id, occurred_at: text, effective_at: at }) => {
        const time = parseOccurredAt(text);
        return [Number(id), time.ok ? time.epochMs : Number(at)];
      })
    );
    const processed = rows.filter(({ state }) => state !== 'pending' && state !== 'failed');
    const members = await loadMembers(
      tx,
      processed.map(({ id }) => Number(id))
    );
    const own = new Map(
      members.map((member) => {
        const id = Number(member.row.id);
        const row = { ...member.row, occurred_ms: times.get(id) ?? null };
        return [id, { ...member, row }];
      })
    );
    const { texts, touched } = await countMembers(tx, app, own, connections);
    for (const [id, time] of times) {
      const counted = texts.get(id);
      await tx
        .table(POS_EVENTS_TABLE)
        .where({ id })
        .update({ occurred_ms: time, ...(counted !== undefined && { counted }) });
    }
    if (await markClosings(tx, app, touched)) tx.onCommit(() => wakeComparing(app));
  });
  return ids.length;
};

interface Filling {
  stopped: boolean;
  running: Promise<void> | null;
}

const fillings = (): Slot<Filling> => ({});

const fillAll = async (app: App, filling: Filling): Promise<void> => {
  const db = await app.db.current();
  const rows = (await db.table(CONNECTIONS_TABLE).select('id').orderBy('id')) as { id: number }[];
  for (const { id } of rows) {
    for (let filled = AT_ONCE; filled > 0 && !filling.stopped;) {
      filled = await withTransientRetry(() => fillStep(app, Number(id)));
      await nextTurn();
    }
  }
};

const run = (app: App, filling: Filling): void => {
  if (filling.stopped || filling.running) return;
  filling.running = getRecordStore(app)
    .detached(() => fillAll(app, filling))
    .catch((error: unknown) => {
      app.log.error(`switchboard: older records were not counted: ${errorText(error)}`);
    })
    .finally(() => {
      filling.running = null;
    });
};

/** Fills in what is there, and looks each minute for what a node of an earlier version accepted. */
export const keepFilling = (app: App): void => {
  const filling: Filling = { stopped: false, running: null };
  app.part(fillings).value = filling;
  app.strapi.cron.add({
    switchboardSalesFigures: {
      task: async () => run(app, filling),
      options: { rule: LOOK_AGAIN },
    },
  });
  run(app, filling);
};

/** Lets the step under way commit. */
export const stopFilling = async (app: App): Promise<void> => {
  const filling = app.part(fillings).value;
  if (!filling) return;
  filling.stopped = true;
  await filling.running;
};
