import { useMemo } from 'react';
import type { CatalogueEvent } from '../../../../shared/contracts/webhooks';
import { keyFor, useText } from '../../utils/text';

/** Names of events and their groups in the reader's language; those of other plugins as they name them. */
export const useEventText = () => {
  const text = useText();
  return useMemo(() => {
    const translated = (prefix: string, name: string, own: string): string => {
      const key = keyFor(prefix, name);
      return key ? text(key) : own;
    };
    return {
      label: ({ event, label }: Pick<CatalogueEvent, 'event' | 'label'>) =>
        translated('catalogue', event, label),
      group: (group: string) => translated('catalogue.group', group, group),
    };
  }, [text]);
};
