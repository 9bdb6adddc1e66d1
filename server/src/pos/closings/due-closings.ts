import type { Core } from '@strapi/strapi';
import { currentExecutor, type Executor, inTransaction, table } from '../../database/connection';
import { createFaultLog } from '../../database/errors/fault-log';
import { isInfrastructureFault } from '../../database/errors/faults';
import { withTransientRetry } from '../../database/retry';
import { type BackgroundWork, createBackgroundWork } from '../../runtime/background-work';
import { errorText } from '../../runtime/text';
import type { Touched } from '../money/count-money';
import { connectionsOf, groupsOf } from '../connections';
import { getRecordStore } from '../processing/record-store';
import { LIMITS } from '../rules/states';
import { type PosClosingRow, POS_CLOSINGS_TABLE } from '../tables';
import { compareAgain } from '../closings';

type Range = Pick<PosClosingRow, 'event_id' | 'connection_id' | 'mode' | 'from_at' | 'to_at'>;
type Due = Pick<PosClosingRow, 'event_id' | 'connection_id' | 'due_at'>;

const AT_ONCE = 20;
const CHUNK = 500;
/** Comparing waits as long as it took, up to this: records are processed in between. */
const MAX_PAUSE_MS = 1_000;
/** One that cannot be compared is tried again after so long. */
const RETRY_MS = 600_000;

const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });

const closings = (strapi: Core.Strapi, executor: Executor) =>
  table(strapi, executor, POS_CLOSINGS_TABLE);

/** Times of records in ascending order, by connection and mode. */
const timesOf = (touched: readonly Touched[]): Map<string, number[]> => {
  const times = new Map<string, number[]>();
  for (const { connection, mode, at } of touched) {
    const key = `${mode}/${connection}`;
    const own = times.get(key);
    if (own) own.push(at);
    else times.set(key, [at]);
  }
  for (const own of times.values()) own.sort((a, b) => a - b);
  return times;
};

/** The first of ascending numbers that is not less. */
const firstFrom = (ascending: readonly number[], least: number): number | undefined => {
  let [low, high] = [0, ascending.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ascending[middle] as number) < least) low = middle + 1;
    else high = middle;
  }
  return ascending[low];
};

/**
 * Makes those closings due whose range has one of these records, in the transaction that processes
 * them; they are compared after it, once each, however many records and batches it were. It locks the
 * connections, as accepting and comparing a closing do: so a record that a closing did not see is met
 * here, whichever of the two was first.
 * @returns whether any is due now
 */
export const markClosings = async (
  strapi: Core.Strapi,
  trx: Executor,
  touched: readonly Touched[]
): Promise<boolean> => {
  if (touched.length === 0) return false;
  const times = timesOf(touched);
  const [earliest, latest] = touched.reduce(
    ([least, most], { at }) => [Math.min(least, at), Math.max(most, at)],
    [Infinity, -Infinity]
  );
  const ranges = (await closings(strapi, trx)
    .select('event_id', 'connection_id', 'mode', 'from_at', 'to_at')
    .whereIn('connection_id', [...new Set(touched.map(({ connection }) => connection))])
    .where('to_at', '>', earliest)
    .where('to_at', '<=', latest + LIMITS.closingMs)
    .where('from_at', '<=', latest)
    .whereNull('due_at')) as Range[];
  const due = ranges.filter(({ connection_id: connection, mode, from_at: from, to_at: to }) => {
    const at = firstFrom(times.get(`${mode}/${Number(connection)}`) ?? [], Number(from));
    return at !== undefined && at < Number(to);
  });
  const dueAt = getRecordStore(strapi).now();
  for (let start = 0; start < due.length; start += CHUNK) {
    await closings(strapi, trx)
      .whereIn(
        'event_id',
        due.slice(start, start + CHUNK).map(({ event_id: id }) => id)
      )
      .update({ due_at: dueAt });
  }
  return due.length > 0;
};

const compareDue = async (
  strapi: Core.Strapi,
  { event_id: id, connection_id: connection }: Due
): Promise<void> => {
  const ids = [Number(connection)];
  const groups = await groupsOf(strapi, await currentExecutor(strapi), ids);
  await inTransaction(strapi, async ({ trx }) => {
    // First of all: MySQL goes on reading what was there when the transaction first read.
    const connections = await connectionsOf(strapi, trx, ids, groups, { lock: true });
    const closing = (await closings(strapi, trx).where({ event_id: id }).first()) as
      PosClosingRow | undefined;
    if (!closing || closing.due_at === null) return;
    await compareAgain(strapi, trx, closing, connections);
    await closings(strapi, trx).where({ event_id: id }).update({ due_at: null });
  });
};

const compareSafely = async (strapi: Core.Strapi, due: Due): Promise<void> => {
  try {
    await withTransientRetry(() => compareDue(strapi, due));
  } catch (error) {
    if (isInfrastructureFault(error)) throw error;
    const { event_id: id, due_at: seen } = due;
    strapi.log.error(`switchboard: the closing ${id} was not compared again: ${errorText(error)}`);
    await closings(strapi, await currentExecutor(strapi))
      .where({ event_id: id, due_at: seen })
      .update({ due_at: getRecordStore(strapi).now() + RETRY_MS });
  }
};

/** Compares those closings that are due, each in a transaction of its own. */
export const compareDueClosings = async (
  strapi: Core.Strapi,
  isStopped: () => boolean = () => false
): Promise<void> => {
  for (;;) {
    const due = (await closings(strapi, await currentExecutor(strapi))
      .select('event_id', 'connection_id', 'due_at')
      .where('due_at', '<=', getRecordStore(strapi).now())
      .orderBy('due_at')
      .limit(AT_ONCE)) as Due[];
    if (due.length === 0) return;
    for (const one of due) {
      if (isStopped()) return;
      const startedAt = performance.now();
      await compareSafely(strapi, one);
      await pause(Math.min(performance.now() - startedAt, MAX_PAUSE_MS));
    }
  }
};

const works = new WeakMap<Core.Strapi, BackgroundWork>();

/** Compares due closings now; for the moment after a commit, and by the clock. Never throws. */
export const wakeComparing = (strapi: Core.Strapi): void => works.get(strapi)?.wake();

export const startComparing = (strapi: Core.Strapi): void => {
  const logFault = createFaultLog(strapi.log);
  works.set(
    strapi,
    createBackgroundWork({
      detached: (passes) => getRecordStore(strapi).detached(passes),
      pass: (isStopped) => compareDueClosings(strapi, isStopped),
      failed: (error) => logFault('switchboard: closings were not compared again', error),
    })
  );
  wakeComparing(strapi);
};

/** Lets the one under way commit. */
export const stopComparing = async (strapi: Core.Strapi): Promise<void> =>
  works.get(strapi)?.stop();
