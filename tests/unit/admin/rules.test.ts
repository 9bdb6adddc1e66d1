import { barPieces, partsOf } from '../../../admin/src/components/health-parts';
import { openGroups } from '../../../admin/src/navigation';
import { needsAttention, statesOf } from '../../../admin/src/pages/events/states';
import { changedFields } from '../../../admin/src/utils/changed-fields';

describe('the navigation', () => {
  const paths = (granted: string[], enabled: string[], features = { crm: true, pos: true }) =>
    openGroups((action) => granted.includes(action), new Set(enabled), features).flatMap(
      ({ entries }) => entries.map(({ path }) => path)
    );

  test('has only what was granted', () => {
    expect(paths(['stock.read'], ['webhooks'])).toEqual(['stock']);
    expect(paths([], ['webhooks'])).toEqual([]);
  });

  test('has nothing of a part that the site does without', () => {
    const granted = ['webhooks.read', 'connections.read', 'pos-events.read', 'stock.read'];
    expect(paths(granted, ['webhooks'], { crm: true, pos: false })).toEqual([
      'overview',
      'webhooks',
      'deliveries',
    ]);
    expect(paths(granted, ['webhooks'], { crm: false, pos: true })).toHaveLength(6);
  });

  test('has no webhooks while their module is off', () => {
    expect(paths(['webhooks.read', 'stock.read'], [])).toEqual(['overview', 'stock']);
  });
});

describe('the counts of a chart', () => {
  test('tell failing deliveries from those that were never tried', () => {
    const counts = { pending: 5, failing: 3, sent: 1, failed: 0 };
    expect(partsOf(counts)).toEqual({ sent: 1, failed: 0, failing: 3, waiting: 2 });
    const kinds = barPieces(counts, 6, 100).map(({ kind }) => kind);
    expect(kinds).toEqual(['failing', 'waiting', 'sent']);
  });

  test('leave a line where there was nothing', () => {
    const none = { pending: 0, failing: 0, sent: 0, failed: 0 };
    expect(barPieces(none, 1, 100).map(({ kind }) => kind)).toEqual(['none']);
  });
});

describe('the states that a filter stands for', () => {
  test('are those that wait with some of their lines too, where a mapping is missing', () => {
    expect(statesOf('needs_mapping')).toEqual(['needs_mapping', 'partially_applied']);
  });

  test('are else the one that is named, or all', () => {
    expect(statesOf('held')).toEqual(['held']);
    expect(statesOf(undefined)).toBeUndefined();
    expect(statesOf('')).toBeUndefined();
  });
});

describe('a record that came in test mode', () => {
  test.each([
    ['failed', [], true],
    ['needs_mapping', [{ line: 0, sku: 'X' }], true],
    ['partially_applied', [{ line: 0, sku: 'X' }], true],
    ['simulated', [{ line: 0, sku: 'X' }], true],
    ['simulated', [], false],
    ['held', [], false],
  ] as const)('%s, waiting for %j: needs attention is %s', (state, waiting, expected) => {
    expect(needsAttention({ state, waiting: [...waiting] })).toBe(expected);
  });
});

describe('what a form sends', () => {
  test('is what differs, and nothing else', () => {
    const before = { name: 'a', active: true, events: ['x'], group: null };
    expect(changedFields({ ...before, events: ['x'], name: 'b' }, before)).toEqual({ name: 'b' });
    expect(changedFields({ ...before }, before)).toEqual({});
    expect(changedFields({ ...before, events: ['x', 'y'] }, before)).toEqual({
      events: ['x', 'y'],
    });
  });
});
