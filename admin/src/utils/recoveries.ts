import type { Recovery } from '../../../shared/contracts/webhooks';

type Seen = Pick<Recovery, 'id' | 'state' | 'sent' | 'failed'>;

/** True if recoveries have sent something, or ended, since the last look. */
export const haveMoved = (before: readonly Seen[], now: readonly Seen[]): boolean => {
  const known = new Map(before.map((recovery) => [recovery.id, recovery]));
  return now.some(({ id, state, sent, failed }) => {
    const last = known.get(id);
    if (!last) return sent + failed > 0;
    return last.state !== state || last.sent + last.failed !== sent + failed;
  });
};
