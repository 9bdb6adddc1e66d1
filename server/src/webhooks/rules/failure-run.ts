export interface FailureRun {
  /** Deliveries in a row that ended failed. */
  count: number;
  /** The run reached the threshold at some point of the sequence. */
  tripped: boolean;
}

/**
 * Goes on counting deliveries that ended `failed` in a row; a `sent` one starts over. Deliveries,
 * not tries: each delivery is handed in once, when it ends. docs/contract-webhooks.md#switching-off.
 */
export const continueRun = (
  count: number,
  outcomes: readonly ('sent' | 'failed')[],
  threshold: number
): FailureRun => {
  let run = count;
  let tripped = false;
  for (const outcome of outcomes) {
    run = outcome === 'sent' ? 0 : run + 1;
    if (outcome === 'failed' && run >= threshold) tripped = true;
  }
  return { count: run, tripped };
};
