import { isSafe } from '../../../server/src/database/checkpoints';

describe('a thread for checkpoints', () => {
  it.each(['3.51.3', '3.51.10', '3.52.0', '4.0.0'])('is started on SQLite %s', (version) => {
    expect(isSafe(version)).toBe(true);
  });

  it.each(['3.51.2', '3.50.7', '3.9.30', '2.99.99'])('is not on SQLite %s', (version) => {
    expect(isSafe(version)).toBe(false);
  });
});
