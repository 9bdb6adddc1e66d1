import type { App } from '../app';
/** `warn`: something to know or to mend at leisure; `fail`: work stands still until it is mended. */
export type CheckState = 'ok' | 'warn' | 'fail';

export interface CheckResult {
  state: CheckState;
  /** What there is, in one line. */
  message: string;
  /** What to do about it, in one line. */
  advice: string;
}

/** One thing that is looked at. It changes nothing. */
export interface Check {
  name: string;
  /** @returns null where it does not concern this site. */
  look(app: App): CheckResult | null | Promise<CheckResult | null>;
}

export interface NamedResult extends CheckResult {
  name: string;
}

const NOTHING = 'nothing to do';

export const ok = (message: string, advice = NOTHING): CheckResult => ({
  state: 'ok',
  message,
  advice,
});
export const warn = (message: string, advice: string): CheckResult => ({
  state: 'warn',
  message,
  advice,
});
export const fail = (message: string, advice: string): CheckResult => ({
  state: 'fail',
  message,
  advice,
});
