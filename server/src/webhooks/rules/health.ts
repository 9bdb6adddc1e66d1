import type { HealthState } from '../../../../shared/contracts/webhooks';

/** What is kept of how the attempts of a webhook went; tests never count. */
export interface Spell {
  /** An attempt was made. */
  attempted: boolean;
  /** When the first attempt after the last success failed, epoch milliseconds; null: the last one succeeded. */
  unwellSince: number | null;
}

/** Goes on with a spell, in the order of the attempts. Switching a webhook off and on is no attempt. */
export const continueSpell = (
  before: Spell,
  attempts: readonly { ok: boolean; at: number }[]
): Spell => {
  let { unwellSince } = before;
  for (const { ok, at } of attempts) unwellSince = ok ? null : (unwellSince ?? at);
  return { attempted: before.attempted || attempts.length > 0, unwellSince };
};

/** docs/contract-webhooks.md#health */
export const healthState = (
  active: boolean,
  { attempted, unwellSince }: Spell,
  isPaused = false
): HealthState => {
  if (!active) return 'off';
  if (isPaused) return 'paused';
  if (unwellSince !== null) return 'failing';
  return attempted ? 'healthy' : 'new';
};
