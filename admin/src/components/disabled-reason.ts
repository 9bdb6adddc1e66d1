import { useCallback } from 'react';
import type { DisabledBecause, DisabledCode } from '../../../shared/contracts/webhooks';
import { type TextKey, useText } from '../utils/text';

const TEXTS: Readonly<Record<DisabledCode, TextKey>> = {
  failed_deliveries: 'banner.reason',
  failing_hours: 'reason.silent',
  gone: 'reason.gone',
  filter: 'reason.filter',
  other_site: 'reason.elsewhere',
};

/** Why something was switched off, as the server says it. */
export interface SwitchedOff {
  disabled_reason: string | null;
  disabled_because: DisabledBecause | null;
}

/** The text of a reason's code, and the number in it. */
export const textOf = ({ code, values }: DisabledBecause): { key: TextKey; n: number } => ({
  key: TEXTS[code],
  n: values.deliveries ?? values.hours ?? 0,
});

/** Says why in the reader's language, without a full stop; a reason without a code as it is. */
export const useReason = (): ((off: SwitchedOff) => string) => {
  const text = useText();
  return useCallback(
    ({ disabled_because: because, disabled_reason: reason }) => {
      if (!because) return (reason ?? '').replace(/\.$/, '');
      const { key, n } = textOf(because);
      return text(key, { n });
    },
    [text]
  );
};
