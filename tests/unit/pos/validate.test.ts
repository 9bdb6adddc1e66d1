import Ajv2020 from 'ajv/dist/2020.js';
import fc from 'fast-check';

import { RECORD_SCHEMAS } from '../../../server/src/pos/rules/schemas';
import { RECORD_KINDS, type RecordKind } from '../../../server/src/pos/rules/records';
import { checkLocationRef, readRecord } from '../../../server/src/pos/rules/validate';

const NOW = Date.UTC(2026, 2, 1, 13, 5);

type Body = Record<string, unknown>;

const line = (fields: Body = {}) => ({ sku: 'MUG', quantity: 2, ...fields });
const sale = (fields: Body = {}): Body => ({
  external_id: 's1',
  occurred_at: '2026-03-01T14:05:00+01:00',
  currency: 'GBP',
  total: 1798,
  line_items: [line()],
  ...fields,
});
const refund = (fields: Body = {}): Body => ({
  external_id: 'r1',
  sale_external_id: 's1',
  occurred_at: '2026-03-01T14:05:00+01:00',
  ...fields,
});
const count = (fields: Body = {}): Body => ({
  external_id: 'c1',
  occurred_at: '2026-03-01T14:05:00+01:00',
  mode: 'absolute',
  counts: [{ sku: 'MUG', quantity: 3 }],
  ...fields,
});
const BASE = { sale, refund, inventory: count };

const read = (kind: RecordKind, body: unknown) =>
  readRecord(kind, Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)), NOW);
const messageOf = (kind: RecordKind, body: unknown) => {
  const reading = read(kind, body);
  return reading.ok ? 'accepted' : reading.issue.message;
};
const MISSING = undefined;

describe('accepted records', () => {
  it('a sale, with everything', () => {
    const body = sale({
      location_ref: 'main',
      line_items: [line({ gtin: '4006381333931', unit_price: 899 }), { gtin: '1', quantity: 1 }],
      customer: { email: 'ada@example.com' },
      meta: { cashier: 'Ada' },
      loyalty: { added_by: 'a later version' },
    });
    expect(read('sale', body)).toEqual({
      ok: true,
      value: {
        kind: 'sale',
        externalId: 's1',
        occurredAt: '2026-03-01T14:05:00+01:00',
        occurredAtMs: NOW,
        effectiveMs: NOW,
        clockAhead: false,
        locationRef: 'main',
        currency: 'GBP',
        total: 1798,
        lines: [
          { sku: 'MUG', gtin: '4006381333931', quantity: 2, unitPrice: 899 },
          { sku: null, gtin: '1', quantity: 1, unitPrice: null },
        ],
        customer: { email: 'ada@example.com' },
        meta: { cashier: 'Ada' },
      },
    });
  });

  it('a refund: restock is the default, no lines means the whole sale', () => {
    expect(read('refund', refund())).toMatchObject({
      ok: true,
      value: { kind: 'refund', restock: true, lines: null, reason: null, saleExternalId: 's1' },
    });
    const partial = refund({ restock: false, reason: 'broken\nhandle', line_items: [line()] });
    expect(read('refund', partial)).toMatchObject({
      value: { restock: false, reason: 'broken\nhandle', lines: [{ sku: 'MUG', quantity: 2 }] },
    });
  });

  it('counts and adjustments', () => {
    expect(read('inventory', count({ counts: [{ sku: 'MUG', quantity: 0 }] })).ok).toBe(true);
    const adjustment = count({ mode: 'relative', counts: [{ sku: 'A', quantity: -4 }] });
    expect(read('inventory', adjustment)).toMatchObject({
      value: { mode: 'relative', counts: [{ sku: 'A', quantity: -4, reason: null }] },
    });
  });

  it('one item twice is fine in an adjustment and in a sale', () => {
    const twice = [
      { sku: 'A', quantity: 1 },
      { sku: 'A', quantity: 1 },
    ];
    expect(messageOf('inventory', count({ mode: 'relative', counts: twice }))).toBe('accepted');
    expect(messageOf('sale', sale({ line_items: twice }))).toBe('accepted');
  });

  it.each(['1e3', '5.0', '-0', '9007199254740991'])('a total of %s', (total) => {
    expect(messageOf('sale', JSON.stringify(sale()).replace('1798', total))).toBe('accepted');
  });

  it('ids of 128 characters, counted as a reader counts them', () => {
    expect(messageOf('sale', sale({ external_id: '🙂'.repeat(128) }))).toBe('accepted');
    expect(messageOf('sale', sale({ external_id: '🙂'.repeat(129) }))).toContain('external_id');
  });

  it.each(['EUR', 'XCG', 'SLE', 'DEM', 'XXX', 'JPY'])('the currency %s', (currency) => {
    expect(messageOf('sale', sale({ currency }))).toBe('accepted');
  });

  it('other time ahead is ordered at its receipt', () => {
    const ahead = { occurred_at: '2027-01-01T00:00:00Z' };
    for (const body of [sale(ahead), count({ ...ahead, mode: 'relative' })]) {
      expect(read('mode' in body ? 'inventory' : 'sale', body)).toMatchObject({
        ok: true,
        value: { effectiveMs: NOW, clockAhead: true },
      });
    }
    const nearly = count({ occurred_at: '2026-03-01T14:10:00+01:00' });
    expect(read('inventory', nearly)).toMatchObject({ ok: true, value: { effectiveMs: NOW } });
  });

  it('fields of our own names that another kind does not have are none of our business', () => {
    const strange = { counts: 5, reason: ['x'], restock: 'maybe' };
    expect(messageOf('sale', sale(strange))).toBe('accepted');
    expect(messageOf('refund', refund({ mode: 1, currency: 'x', total: 0.5 }))).toBe('accepted');
    expect(messageOf('inventory', count({ line_items: 'x', reason: 1, total: 0.5 }))).toBe(
      'accepted'
    );
  });
});

describe('refused records name the field and the rule', () => {
  const sku = (value: unknown) => sale({ line_items: [line({ sku: value })] });
  const quantity = (value: unknown) => sale({ line_items: [line(), line({ quantity: value })] });

  it.each<[RecordKind, unknown, string]>([
    ['sale', '', 'body must not be empty'],
    ['sale', '{', 'body must be valid JSON'],
    ['sale', '[]', 'body must be a JSON object, not a list'],
    ['sale', 'null', 'body must be a JSON object, not null'],
    ['sale', sale({ external_id: MISSING }), 'external_id is required'],
    ['sale', sale({ occurred_at: MISSING }), 'occurred_at is required'],
    ['sale', sale({ currency: MISSING }), 'currency is required'],
    ['sale', sale({ total: MISSING }), 'total is required'],
    ['sale', sale({ line_items: MISSING }), 'line_items is required'],
    ['sale', sale({ line_items: [] }), 'line_items must not be empty'],
    ['sale', sale({ line_items: {} }), 'line_items must be a list, not an object'],
    ['sale', sale({ line_items: Array(501).fill(line()) }), 'line_items must have at most 500'],
    ['sale', sale({ line_items: [null] }), 'line_items[0] must be a JSON object, not null'],
    ['sale', sale({ line_items: [{ quantity: 1 }] }), 'line_items[0] must have a sku or a gtin'],
    ['sale', sku(5), 'line_items[0].sku must be a string, not a number'],
    ['sale', sku(''), 'line_items[0].sku must not be empty'],
    ['sale', sku('a\u0000b'), 'line_items[0].sku must not contain control characters'],
    ['sale', sku('a\u0085b'), 'line_items[0].sku must not contain control characters'],
    ['sale', sku('\ud800'), 'line_items[0].sku must be valid Unicode'],
    ['sale', sku('x'.repeat(129)), 'line_items[0].sku must have at most 128 characters'],
    ['sale', quantity(MISSING), 'line_items[1].quantity is required'],
    ['sale', quantity(0), 'line_items[1].quantity must be a positive whole number'],
    ['sale', quantity(-1), 'line_items[1].quantity must be a positive whole number'],
    ['sale', quantity(1.5), 'line_items[1].quantity must be a whole number without quotes, not a'],
    ['sale', quantity('5'), 'line_items[1].quantity must be a whole number without quotes, not a'],
    ['sale', quantity(null), 'line_items[1].quantity must be a whole number'],
    ['sale', quantity(1e9 + 1), 'line_items[1].quantity must be at most 1000000000'],
    ['sale', sale({ total: 17.98 }), 'total must be a whole number'],
    ['sale', sale({ total: '1798' }), 'total must be a whole number'],
    ['sale', sale({ total: 2 ** 53 }), 'total must be at most 9007199254740991'],
    ['sale', sale({ currency: 'gbp' }), 'currency must be an ISO 4217'],
    ['sale', sale({ currency: 'ZZZ' }), 'currency must be an ISO 4217'],
    ['sale', sale({ currency: 826 }), 'currency must be a string, not a number'],
    ['sale', sale({ external_id: 5 }), 'external_id must be a string, not a number'],
    ['sale', sale({ external_id: 'a\ud83d' }), 'external_id must be valid Unicode'],
    ['sale', sale({ customer: 'Ada' }), 'customer must be a JSON object, not a string'],
    ['sale', sale({ meta: [] }), 'meta must be a JSON object, not a list'],
    ['sale', sale({ location_ref: 1 }), 'location_ref must be a string'],
    ['sale', sale({ occurred_at: '2026-03-01T14:05:00' }), 'occurred_at must be an ISO 8601'],
    ['sale', sale({ occurred_at: '2026-02-30T14:05:00Z' }), 'occurred_at must name a day'],
    ['refund', refund({ sale_external_id: MISSING }), 'sale_external_id is required'],
    ['refund', refund({ line_items: [] }), 'line_items must not be empty'],
    ['refund', refund({ restock: 'false' }), 'restock must be true or false, not a string'],
    ['refund', refund({ restock: null }), 'restock must be true or false, not null'],
    ['refund', refund({ reason: 'a\u0000' }), 'reason must not contain control characters'],
    ['refund', refund({ reason: '\udc00' }), 'reason must be valid Unicode'],
    ['refund', refund({ line_items: [line({ gtin: 4 })] }), 'line_items[0].gtin must be a string'],
    ['refund', refund({ sale_external_id: '\ud800' }), 'sale_external_id must be valid Unicode'],
    ['inventory', count({ mode: MISSING }), 'mode is required'],
    ['inventory', count({ mode: 'delta' }), 'mode must be one of: absolute, relative'],
    ['inventory', count({ counts: [] }), 'counts must not be empty'],
    ['inventory', count({ counts: [{ quantity: 1 }] }), 'counts[0].sku is required'],
    ['inventory', count({ counts: [{ sku: 'A' }] }), 'counts[0].quantity is required'],
    [
      'inventory',
      count({ counts: [{ sku: 'A', quantity: -1 }] }),
      'counts[0].quantity must not be',
    ],
    [
      'inventory',
      count({ occurred_at: '2026-03-01T13:10:00.001Z' }),
      'occurred_at must not be mor',
    ],
  ])('%s %#: %s -> %s', (kind, body, message) => {
    expect(messageOf(kind, body)).toContain(message);
    const reading = read(kind, body);
    expect(!reading.ok && message.startsWith(reading.issue.field)).toBe(true);
  });

  it('an item twice in a stocktake', () => {
    const counts = ['A', 'B', 'A'].map((name) => ({ sku: name, quantity: 1 }));
    expect(messageOf('inventory', count({ counts }))).toContain('counts[2].sku must not name');
  });

  it.each([
    ['9007199254740993', 'total must be at most'],
    ['1e400', 'total must be'],
    ['-1e400', 'total must be'],
    ['1.00000000000000000001', 'total must be a whole number, not a fraction'],
    ['1e-400', 'total must be a whole number, not a fraction'],
  ])('a total written %s', (total, message) => {
    expect(messageOf('sale', JSON.stringify(sale()).replace('1798', total))).toContain(message);
  });

  it('a fraction that rounds is nobody’s business in meta', () => {
    const text = JSON.stringify(sale({ meta: { total: 0 } }));
    expect(messageOf('sale', text.replace('"total":0', '"total":1e-400'))).toBe('accepted');
  });

  it('a required field is not found on a smuggled prototype', () => {
    const text = JSON.stringify(sale({ external_id: MISSING }));
    const smuggled = text.replace('{', '{"__proto__":{"external_id":"x"},');
    expect(messageOf('sale', smuggled)).toBe('external_id is required');
  });
});

describe('any JSON at all', () => {
  it.each(RECORD_KINDS)('%s: never throws, whatever the fields hold', (kind) => {
    const fields = ['external_id', 'occurred_at', 'line_items', 'counts', 'mode', 'reason', 'meta'];
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom(...fields, 'total', '__proto__'), fc.jsonValue()),
        (fuzz) => {
          expect(typeof read(kind, { ...BASE[kind](), ...fuzz }).ok).toBe('boolean');
        }
      ),
      { numRuns: 300 }
    );
  });
});

describe('a body is valid at one route only', () => {
  const lines = [{ sku: 'A', quantity: 1 }];

  it.each<[RecordKind, Body, string, RegExp]>([
    ['sale', { sale_external_id: 's' }, 'sale_external_id', /every required field of a refund/],
    ['sale', { sale_external_id: null }, 'sale_external_id', /sent to \/refund/],
    [
      'sale',
      { mode: 1, counts: [] },
      'mode',
      /^mode and counts must not be in a sale: .*inventory/,
    ],
    ['refund', { mode: 'relative', counts: [{}] }, 'mode', /not be in a refund/],
    ['inventory', { sale_external_id: 1 }, 'sale_external_id', /not be in an inventory message/],
    ['inventory', { currency: 1, total: 1, line_items: 1 }, 'currency', /field of a sale/],
  ])('%s with %j', (kind, more, field, message) => {
    const reading = read(kind, BASE[kind](more));
    expect(reading).toMatchObject({ ok: false, issue: { field } });
    expect(messageOf(kind, BASE[kind](more))).toMatch(message);
  });

  it('a refund may tell what a sale tells; it is no sale then', () => {
    const told = refund({ currency: 'GBP', total: 100, line_items: lines });
    expect(messageOf('refund', told)).toBe('accepted');
    expect(messageOf('sale', told)).toMatch(/^sale_external_id /);
  });

  it('whatever fields it has', () => {
    const all = { ...sale(), ...refund(), ...count() };
    fc.assert(
      fc.property(fc.subarray(Object.keys(all)), (fields) => {
        const body = Object.fromEntries(
          Object.entries(all).filter(([key]) => fields.includes(key))
        );
        const accepted = RECORD_KINDS.filter((kind) => read(kind, body).ok);
        expect(accepted.length).toBeLessThanOrEqual(1);
      }),
      { numRuns: 300 }
    );
  });
});

describe('the published schemas', () => {
  it.each(RECORD_KINDS)('%s: says what no schema can say', (kind) => {
    const { description } = RECORD_SCHEMAS[kind] as { description: string };
    for (const words of ['UTF-8', '262144 bytes', 'twice', '16 deep', 'calendar', 'once']) {
      expect(description).toContain(words);
    }
    if (kind !== 'inventory') return;
    expect(description).toMatch(/no sku appears twice/);
    expect(description).toMatch(/at most 5 minutes ahead/);
  });

  it.each(RECORD_KINDS)('%s: its id, its draft, and its own examples pass', (kind) => {
    const schema = RECORD_SCHEMAS[kind];
    expect(schema.$id).toBe(`${kind}.v1`);
    expect(schema.$schema).toBe('https://json-schema.org/draft/2020-12/schema');
    const examples = schema.examples as unknown[];
    expect(examples.length).toBeGreaterThan(0);
    for (const example of examples) expect(messageOf(kind, example)).toBe('accepted');
  });

  it.each(RECORD_KINDS)('%s: a stranger who compiles the served text agrees with us', (kind) => {
    const served = JSON.parse(JSON.stringify(RECORD_SCHEMAS[kind])) as object;
    const validate = new Ajv2020({ strict: true }).compile(served);
    fc.assert(
      fc.property(
        fc.dictionary(
          fc.constantFrom('external_id', 'currency', 'total', 'line_items', 'counts', 'mode'),
          fc.oneof(fc.jsonValue(), fc.constantFrom<unknown>('absolute', 'EUR', 5, undefined))
        ),
        (fuzz) => {
          const body = JSON.parse(JSON.stringify({ ...BASE[kind](), ...fuzz })) as unknown;
          if (read(kind, body).ok) expect(validate(body)).toBe(true);
          if (!validate(body)) expect(read(kind, body).ok).toBe(false);
        }
      ),
      { numRuns: 200 }
    );
  });
});

describe('checkLocationRef', () => {
  const record = (kind: RecordKind, fields: Body = {}) => {
    const reading = read(kind, BASE[kind](fields));
    if (!reading.ok) throw new Error(reading.issue.message);
    return reading.value;
  };

  it('asks for a location only where the connection maps several', () => {
    expect(checkLocationRef(record('sale'), 0)).toBeNull();
    expect(checkLocationRef(record('sale'), 1)).toBeNull();
    expect(checkLocationRef(record('sale'), 2)).toMatchObject({ field: 'location_ref' });
    expect(checkLocationRef(record('inventory'), 2)?.message).toContain('location_ref is required');
    expect(checkLocationRef(record('sale', { location_ref: 'a' }), 2)).toBeNull();
    expect(checkLocationRef(record('refund'), 2)).toBeNull();
  });
});
