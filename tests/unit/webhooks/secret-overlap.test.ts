import { answeredSinceRotation, previousSecret } from '../../../server/src/webhooks/webhook';

const rotated = (until: number | null, answered: number | null = null) => ({
  previous_secret: until === null ? null : 'sealed',
  previous_secret_until: until,
  answered_rotation: answered,
});

describe('the secret before the last rotation', () => {
  beforeEach(() => jest.useFakeTimers({ now: 1000 }));
  afterEach(() => jest.useRealTimers());

  it('signs until its time is over, and not a moment longer', () => {
    expect(previousSecret(rotated(1001))).toBe('sealed');
    expect(previousSecret(rotated(1000))).toBeNull();
    expect(previousSecret(rotated(999))).toBeNull();
    expect(previousSecret(rotated(null))).toBeNull();
  });

  it('goes with an answer since that rotation, and not with one since an earlier one', () => {
    expect(answeredSinceRotation(rotated(2000, 2000))).toBe(true);
    expect(answeredSinceRotation(rotated(2000, 1500))).toBe(false);
    expect(answeredSinceRotation(rotated(2000))).toBe(false);
    expect(answeredSinceRotation(rotated(1000, 1000))).toBeNull();
  });
});
