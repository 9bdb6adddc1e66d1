import fc from 'fast-check';
import { textOf } from '../../../admin/src/components/disabled-reason';
import { CAME_FROM_ANOTHER_SITE } from '../../../server/src/database/site';
import { continueFailing, type Failing } from '../../../server/src/webhooks/rules/failing';
import { disabledBecause, UNFIT_FILTER } from '../../../server/src/webhooks/webhook';
import {
  filterOf,
  narrowed,
  REAL_STATES,
  recoveryFilterOf,
} from '../../../admin/src/pages/deliveries/log-filter';
import { needsOfTills, needsOfWebhooks } from '../../../admin/src/pages/overview/needs';
import {
  type Condition,
  completeOf,
  conditionsOf,
  firstIncomplete,
  OPERATORS,
  parseFilter,
  pathsOf,
  schemaOf,
} from '../../../admin/src/pages/webhooks/filter-conditions';
import type { Attention, WebhookHealth } from '../../../shared/contracts/overview';
import { DISABLED_CODES, type Health } from '../../../shared/contracts/webhooks';

describe('the log that an address asks for', () => {
  test('is without tests where no state is named, and of one webhook on its page', () => {
    expect(filterOf(new URLSearchParams('cause=refused&page=2'))).toEqual({
      cause: 'refused',
      state: REAL_STATES,
    });
    expect(filterOf(new URLSearchParams('webhook=7&state=test'), 3)).toEqual({
      webhook: 3,
      state: 'test',
    });
  });

  test('begins with the newest again when it is narrowed, and keeps the rest', () => {
    const params = new URLSearchParams('tab=deliveries&cursor=abc&delivery=4&q=Ada&cause=dns');
    const next = narrowed(params, { cause: undefined, event: 'deal.won' });
    expect(next.toString()).toBe('tab=deliveries&q=Ada&event=deal.won');
  });
});

test.each([
  ['waiting,failing', 'failing'],
  ['failed', 'failed'],
  ['failing,failed', undefined],
  ['waiting,failing,failed,sent', undefined],
])('what of the states %s is sent again', (state, expected) => {
  expect(recoveryFilterOf({ state, cause: 'refused' })).toEqual({
    cause: 'refused',
    ...(expected && { state: expected }),
  });
});

test('each reason that the server keeps has a code with its number, and a text', () => {
  const reasonOf = (
    run: Partial<Failing>,
    { isGone = false, ...limits }: { failures: number; failingHours: number; isGone?: boolean }
  ) => {
    const fresh = { consecutiveFailures: 0, failedAttempts: 0, failingSince: null };
    const last = { ok: false, ended: 'failed', at: 24 * 3_600_000, isGone } as const;
    return continueFailing({ ...fresh, ...run }, [last], limits).reason ?? '';
  };
  const limits = { failures: 20, failingHours: 24 };
  const reasons = [
    reasonOf({ consecutiveFailures: 19 }, limits),
    reasonOf({ failedAttempts: 500, failingSince: 0 }, limits),
    reasonOf({}, { ...limits, isGone: true }),
    `${UNFIT_FILTER} pattern may not be used.`,
    CAME_FROM_ANOTHER_SITE,
  ].map(disabledBecause);
  expect(reasons).toEqual([
    { code: 'failed_deliveries', values: { deliveries: 20 } },
    { code: 'failing_hours', values: { hours: 24 } },
    { code: 'gone', values: {} },
    { code: 'filter', values: {} },
    { code: 'other_site', values: {} },
  ]);
  expect(reasons.map((one) => textOf(one!))).toEqual([
    { key: 'banner.reason', n: 20 },
    { key: 'reason.silent', n: 24 },
    { key: 'reason.gone', n: 0 },
    { key: 'reason.filter', n: 0 },
    { key: 'reason.elsewhere', n: 0 },
  ]);
  expect(reasons.map((one) => one!.code).sort()).toEqual([...DISABLED_CODES].sort());
  expect([null, 'Somebody wrote this.'].map(disabledBecause)).toEqual([null, null]);
});

describe('a filter by conditions', () => {
  const conditions: Condition[] = [
    { path: 'deal.status', operator: 'is', value: 'won' },
    { path: 'deal.value', operator: 'atLeast', value: '1000' },
    { path: 'deal.currency', operator: 'oneOf', value: 'EUR,CHF' },
    { path: 'changed', operator: 'contains', value: 'status' },
    { path: 'contact', operator: 'exists', value: '' },
    { path: 'deal.lost_reason', operator: 'isNot', value: 'null' },
    { path: 'company.email', operator: 'endsWith', value: '@example.com' },
    { path: 'company.email', operator: 'includes', value: 'a' },
    { path: 'company.name', operator: 'startsWith', value: 'Offer' },
  ];

  test('is a JSON Schema, and is read back from it whatever order its keys are kept in', () => {
    const schema = schemaOf(conditions);
    expect(schema).toMatchObject({
      type: 'object',
      properties: {
        deal: {
          properties: { status: { const: 'won' }, value: { type: 'number', minimum: 1000 } },
          required: ['status', 'value', 'currency', 'lost_reason'],
        },
        changed: { type: 'array', contains: { const: 'status' } },
      },
    });
    const reordered = JSON.parse(
      JSON.stringify(schema, (_key, value: unknown) =>
        typeof value === 'object' && value !== null && !Array.isArray(value)
          ? Object.fromEntries(Object.entries(value).reverse())
          : value
      )
    ) as Record<string, unknown>;
    const byPath = (a: Condition, b: Condition) => a.path.localeCompare(b.path);
    expect([...(conditionsOf(reordered) ?? [])].sort(byPath)).toEqual([...conditions].sort(byPath));
    expect(schemaOf([])).toBeNull();
  });

  test('says which condition lacks a value, a path or a number, and leaves none of them out unseen', () => {
    const fine = { path: 'deal.value', operator: 'atLeast', value: '1' } as const;
    for (const lacking of [
      { ...fine, value: ' ' },
      { ...fine, path: '' },
      { ...fine, value: 'many' },
      { path: 'a', operator: 'includes', value: '' } as const,
    ]) {
      expect([lacking, firstIncomplete([fine, lacking])]).toEqual([lacking, 2]);
      expect(completeOf([fine, lacking])).toEqual([fine]);
    }
    expect(firstIncomplete([fine, { path: 'a', operator: 'exists', value: '' }])).toBe(0);
  });

  test('takes digits as a number and as text, and what begins with a zero as text', () => {
    const values = ['10115', '0', '01067', '1.50', '-3', '9007199254740993'];
    expect(
      values.map((value) => schemaOf([{ path: 'zip', operator: 'is', value }])?.properties)
    ).toEqual([
      { zip: { enum: [10115, '10115'] } },
      { zip: { enum: [0, '0'] } },
      { zip: { const: '01067' } },
      { zip: { const: '1.50' } },
      { zip: { enum: [-3, '-3'] } },
      { zip: { const: '9007199254740993' } },
    ]);
    const typed = fc.constantFrom(...values, '007', '01', '1', '', 'true', 'null', 'a b');
    const operator = fc.constantFrom(...OPERATORS.filter((one) => !/^(at|exists)/.test(one)));
    fc.assert(
      fc.property(fc.array(typed, { minLength: 1, maxLength: 4 }), operator, (some, chosen) => {
        const value = chosen === 'oneOf' ? some.join(',') : (some[0] ?? '');
        const condition: Condition = { path: 'a.b', operator: chosen, value };
        expect(conditionsOf(schemaOf([condition]))).toEqual([condition]);
      })
    );
  });

  test('keeps two conditions on the same value apart', () => {
    const twice: Condition[] = [
      { path: 'status', operator: 'isNot', value: 'a' },
      { path: 'status', operator: 'isNot', value: '2' },
      { path: 'status', operator: 'atLeast', value: '1' },
    ];
    const read = conditionsOf(schemaOf(twice)) ?? [];
    expect(read).toHaveLength(3);
    expect(read).toEqual(expect.arrayContaining(twice));
  });

  test('is read where it was made elsewhere, or left to its JSON', () => {
    const of = (schema: object) =>
      conditionsOf({ type: 'object', required: ['a'], properties: { a: schema } });
    expect(of({ const: '01067' })).toEqual([{ path: 'a', operator: 'is', value: '01067' }]);
    expect(of({ enum: ['007'] })).toEqual([{ path: 'a', operator: 'oneOf', value: '007' }]);
    expect(of({ const: 10115 })).toBeNull();
  });

  test('is none where the schema says more than conditions can', () => {
    expect(conditionsOf({ anyOf: [{ required: ['a'] }, { required: ['b'] }] })).toBeNull();
    expect(conditionsOf({ type: 'object', properties: { a: { const: 1 } } })).toBeNull();
    expect(conditionsOf(null)).toEqual([]);
  });

  test('takes a JSON object and nothing else', () => {
    expect(parseFilter('  ')).toBeNull();
    expect(parseFilter('[]')).toBeUndefined();
    expect(parseFilter('{')).toBeUndefined();
    expect(parseFilter('{"required":["a"]}')).toEqual({ required: ['a'] });
  });

  test('offers the values of an example', () => {
    const example = { contact: { id: '1', fields: {} }, changed: ['email'], total: 3 };
    expect(pathsOf(example)).toEqual(['contact.id', 'contact.fields', 'changed', 'total']);
  });
});

describe('what needs somebody', () => {
  const webhook = (
    id: number,
    health: Partial<Health>,
    more: Partial<WebhookHealth> = {}
  ): WebhookHealth => ({
    webhook_id: id,
    name: `W${id}`,
    disabled_reason: null,
    disabled_because: null,
    health: {
      state: 'healthy',
      failing_since: null,
      paused_until: null,
      waiting: 0,
      failing: 0,
      ...health,
    },
    pending: 0,
    failing: 0,
    sent: 0,
    failed: 0,
    last: null,
    ...more,
  });

  test('is nothing where every webhook is well, new, or off by its owner with nothing waiting', () => {
    const well = [webhook(1, {}), webhook(2, { state: 'new', waiting: 3 })];
    expect(needsOfWebhooks([...well, webhook(3, { state: 'off' })])).toEqual([]);
  });

  test('has a sentence and a remedy for each, in the order of the server', () => {
    const needs = needsOfWebhooks([
      webhook(1, { state: 'paused', waiting: 2, paused_until: '2030-01-01T00:00:00Z' }),
      webhook(2, { state: 'failing', failing: 5, failing_since: '2030-01-01T00:00:00Z' }),
      webhook(3, { state: 'failing', failing: 71 }),
      webhook(4, {}, { failed: 2 }),
      webhook(5, { state: 'off', waiting: 1 }, { disabled_reason: 'failed' }),
      webhook(6, { state: 'off', waiting: 1 }),
    ]);
    expect(needs.map(({ text }) => text)).toEqual(
      ['paused', 'failing', 'failing', 'gaveUp', 'switchedOff', 'off'].map(
        (name) => `needs.webhook.${name}`
      )
    );
    for (const { remedies } of needs) expect(remedies.length).toBeGreaterThan(0);
  });

  const steps = { webhook: null, till: null, contact: null };
  const none: Attention = { records: null, tills: null, refused: null, imports: [], steps };

  test('is what tills and imports left: the records that stock lacks first', () => {
    const till = {
      ...{ id: 3, name: 'Front', active: false, disabled_reason: 'why', disabled_because: null },
      ...{ silent_since: null, expected_every_minutes: 30 },
    };
    const needs = needsOfTills({
      steps,
      records: { failed: 1, needs_mapping: 2, held: 3, differs: 4 },
      tills: [till],
      refused: 5,
      imports: [{ id: 6, kind: 'contacts', failed: 7, finished_at: '2030-01-01T00:00:00Z' }],
    });
    expect(needs.map(({ id, values }) => [id, values.n])).toEqual([
      ['records-failed', 1],
      ['records-refused', 5],
      ['records-needs-mapping', 2],
      ['records-held', 3],
      ['records-differ', 4],
      ['connection-3', undefined],
      ['import-6', 7],
    ]);
    for (const { remedies } of needs) expect(remedies.length).toBeGreaterThan(0);
    expect(needsOfTills(none)).toEqual([]);
  });

  test('says since when a till is silent, and how often it was expected', () => {
    const till = {
      ...{ id: 3, name: 'Front', active: true, disabled_reason: null, disabled_because: null },
      ...{ silent_since: '2030-01-01T12:04:00Z', expected_every_minutes: 30 },
    };
    expect(needsOfTills({ ...none, tills: [till] })).toEqual([
      {
        id: 'silent-3',
        tone: 'danger',
        text: 'needs.connection.silent',
        values: { name: 'Front', n: 30 },
        at: '2030-01-01T12:04:00Z',
        remedies: [{ label: 'needs.open', to: 'tills/3' }],
      },
    ]);
  });
});
