import type { KindRules } from './types';

const count = (value: unknown): number => (typeof value === 'number' ? value : 0);

export const campaignRules: KindRules = {
  possible: ({ action, keys }) =>
    action !== 'delete' && (!keys || keys.has('status')) ? ['campaign.sent'] : [],
  derive({ before, after }) {
    if (!after || (before && !before.keys.includes('status'))) return [];
    const { id, title, subject, status, total, sent, failed } = after.payload;
    if (status !== 'sent' || before?.payload.status === 'sent') return [];
    const data = {
      id,
      title,
      subject,
      total: count(total),
      sent: count(sent),
      failed: count(failed),
    };
    return [{ event: 'campaign.sent', data }];
  },
};
