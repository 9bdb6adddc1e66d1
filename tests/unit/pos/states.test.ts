import {
  canMove,
  ERROR_STATUS,
  EVENT_STATES,
  STATE_MOVES,
} from '../../../server/src/pos/rules/states';

describe('event states', () => {
  it('move only forward to where the lines are applied, and back only by a decision', () => {
    expect(canMove('pending', 'held')).toBe(true);
    expect(canMove('held', 'applied')).toBe(true);
    expect(canMove('needs_mapping', 'partially_applied')).toBe(true);
    expect(canMove('partially_applied', 'applied')).toBe(true);
    expect(canMove('failed', 'pending')).toBe(true);
    expect(canMove('applied', 'pending')).toBe(false);
    expect(canMove('applied', 'held')).toBe(false);
    expect(EVENT_STATES.some((state) => canMove('simulated', state))).toBe(false);
  });

  it('can all be reached from pending', () => {
    const reached = new Set<string>(['pending']);
    for (const state of reached) {
      for (const next of STATE_MOVES[state as keyof typeof STATE_MOVES]) reached.add(next);
    }
    expect([...reached].sort()).toEqual([...EVENT_STATES].sort());
  });
});

it('every error code has the status of the specification', () => {
  expect(ERROR_STATUS).toMatchObject({
    unknown_key: 401,
    revoked_key: 401,
    signature_mismatch: 401,
    timestamp_outside_window: 401,
    secret_unavailable: 401,
    schema_invalid: 400,
    insufficient_scope: 403,
    stale_count: 409,
    rate_limited: 429,
    not_ready: 503,
  });
});
