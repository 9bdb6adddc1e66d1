import type { KindRules } from './types';

/**
 * A form matters when an entry of it appears. What follows is work (`forms/submit.ts`), done whether
 * or not somebody listens: the sender is added to the CRM all the same.
 */
export const formRules: KindRules = {
  possible: ({ action }) => (action === 'create' ? ['form.submitted'] : []),
  derive: () => [],
};
