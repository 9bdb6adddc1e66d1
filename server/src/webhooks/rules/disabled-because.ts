import type { DisabledBecause } from '../../../../shared/contracts/webhooks';

/** How the reason begins where a filter may not be used; what is wrong with it follows. */
export const UNFIT_FILTER = 'Its filter may not be used:';

/** How the reason begins where a webhook or a connection came from another site. */
export const FROM_ELSEWHERE = 'It came from another site';

/** The sentences that are stored as reasons, those of earlier versions too. */
const SENTENCES: readonly (readonly [RegExp, (number: number) => DisabledBecause])[] = [
  [
    /after (\d+) failed deliver/,
    (deliveries) => ({ code: 'failed_deliveries', values: { deliveries } }),
  ],
  [
    /no attempt succeeded for ([\d.]+) hour/,
    (hours) => ({ code: 'failing_hours', values: { hours } }),
  ],
  [/answered 410/, () => ({ code: 'gone', values: {} })],
  [new RegExp(`^${UNFIT_FILTER}`), () => ({ code: 'filter', values: {} })],
  [new RegExp(`^${FROM_ELSEWHERE}`), () => ({ code: 'other_site', values: {} })],
];

/**
 * The stored reason for which a webhook or a connection was switched off, as a code with its numbers;
 * null for none, and for a sentence that no version of the plugin wrote.
 * docs/contract-webhooks.md#switching-off
 */
export const disabledBecause = (reason: string | null): DisabledBecause | null => {
  if (reason === null) return null;
  for (const [sentence, because] of SENTENCES) {
    const found = sentence.exec(reason);
    if (found) return because(Number(found[1]));
  }
  return null;
};
