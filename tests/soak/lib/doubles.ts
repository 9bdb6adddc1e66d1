import type { Kill } from './cluster';
import type { Arrival } from './counting-receiver';

/** From an attempt's arrival at the receiver until its outcome is recorded. */
const UNDER_WAY_MS = 5000;

/** Whether the process that made an attempt was killed before it can have recorded it. */
const wasUnderWay = ({ pid, at }: Arrival, kills: readonly Kill[]): boolean =>
  kills.some((kill) => kill.pid === pid && kill.at >= at - 50 && kill.at <= at + UNDER_WAY_MS);

/** Deliveries that came again although the attempt before was not under way at a kill. */
export const unexplainedDoubles = (
  arrivals: ReadonlyMap<string, readonly Arrival[]>,
  kills: readonly Kill[]
): { id: string; attempts: readonly Arrival[] }[] =>
  [...arrivals]
    .filter(([, attempts]) => attempts.slice(0, -1).some((one) => !wasUnderWay(one, kills)))
    .map(([id, attempts]) => ({ id, attempts }));
