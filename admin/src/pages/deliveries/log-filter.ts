import type { RecoveryFilter } from '../../../../shared/contracts/webhooks';
import type { LogFilter } from '../../services/webhooks';

/** The keys of the address that narrow the log, named as in the routes. */
export const FILTER_KEYS = [
  'webhook',
  'event',
  'state',
  'cause',
  'subject_type',
  'subject_id',
  'from',
  'to',
  'q',
  'recovery',
] as const;
export type FilterKey = (typeof FILTER_KEYS)[number];

/** Everything but tests, which were sent by hand and are about nothing. */
export const REAL_STATES = 'waiting,failing,failed,sent';

/** The filter that an address asks for. Without a state tests are left out. */
export const filterOf = (params: URLSearchParams, webhook?: number): LogFilter => {
  const filter: Record<string, string | number> = { state: REAL_STATES };
  for (const key of FILTER_KEYS) {
    const value = params.get(key);
    if (value) filter[key] = value;
  }
  return webhook === undefined ? filter : { ...filter, webhook };
};

/** An address with other filters: from the newest delivery again, and none of them open. */
export const narrowed = (
  params: URLSearchParams,
  changes: Partial<Record<FilterKey, string | undefined>>
): URLSearchParams => {
  const next = new URLSearchParams(params);
  for (const [key, value] of Object.entries(changes)) {
    if (value) next.set(key, value);
    else next.delete(key);
  }
  next.delete('cursor');
  next.delete('delivery');
  return next;
};

/** The resendable state that the log shows, if it is only one. */
const stateOfRecovery = (states: string): Pick<RecoveryFilter, 'state'> => {
  const [one, other] = states
    .split(',')
    .filter((state) => state === 'failing' || state === 'failed') as ('failing' | 'failed')[];
  return one && !other ? { state: one } : {};
};

/**
 * The filter of a recovery that resends the failing or failed deliveries of this log. It takes one
 * state, and leaves out what is neither by itself.
 */
export const recoveryFilterOf = ({ state, ...rest }: LogFilter): RecoveryFilter => ({
  ...(rest as Omit<RecoveryFilter, 'state'>),
  ...stateOfRecovery(String(state ?? '')),
});
