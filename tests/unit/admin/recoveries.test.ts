import { haveMoved } from '../../../admin/src/utils/recoveries';

const one = (changes: object = {}) => ({
  id: 1,
  state: 'running' as const,
  sent: 0,
  failed: 0,
  ...changes,
});

describe('what a look at recoveries tells of the log', () => {
  it.each([
    ['nothing where nothing moved', [one()], [one()], false],
    ['nothing of one that began', [], [one()], false],
    ['that deliveries were sent', [one()], [one({ sent: 3 })], true],
    ['that deliveries failed again', [one()], [one({ failed: 1 })], true],
    ['that one ended', [one({ sent: 3 })], [one({ sent: 3, state: 'done' })], true],
    ['that one began and ended between two looks', [], [one({ sent: 3, state: 'done' })], true],
    ['nothing where an old one is listed no more', [one({ sent: 3 })], [], false],
  ])('%s', (_what, before, now, moved) => {
    expect(haveMoved(before, now)).toBe(moved);
  });
});
