import Ajv2020 from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { readBatch, readValidation } from '../../../server/src/pos/rules/envelopes';
import { elementsOf, membersOf } from '../../../server/src/pos/rules/json-slices';
import { batchSchema } from '../../../server/src/pos/rules/schemas/batch';

/** JSON with as much white space as JSON may have. */
const spaced = (value: unknown): string => {
  if (Array.isArray(value)) return `[ ${value.map(spaced).join(' ,\n')}\t]`;
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).map(
      ([key, one]) => `${JSON.stringify(key)} :\r\n${spaced(one)} `
    );
    return `{ ${members.join(', ')}}`;
  }
  return JSON.stringify(value);
};

const text = fc.oneof(
  fc.jsonValue().map((value) => JSON.stringify(value)),
  fc.jsonValue().map(spaced)
);

const bytes = (body: string): Buffer => Buffer.from(body, 'utf8');

describe('parts of a JSON text', () => {
  it('are the texts that it was put together from', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.string(), text)), fc.nat(), (pairs, most) => {
        const members = pairs.map(([key, value]) => `${JSON.stringify(key)}: ${value}`);
        const object = ` {\n${members.join(' , ')} } `;
        expect(membersOf(object)).toEqual(pairs.map(([key, value]) => ({ key, value })));
        const values = pairs.map(([, value]) => value);
        expect(elementsOf(` [${values.join(' ,\t')} ]`, most)).toEqual(values.slice(0, most));
      })
    );
  });

  it('are found in one look, however deep or escaped they are', () => {
    const deep = `${'['.repeat(250_000)}${']'.repeat(250_000)}`;
    const escaped = `"${'\\\\'.repeat(250_000)}\\""`;
    const body = `{"records":[{"kind":"sale","body":${deep}},{"kind":"sale","body":${escaped}}]}`;
    const read = readBatch(bytes(body));
    if (!read.ok) throw new Error(read.issue.message);
    expect(read.value.map((entry) => entry.ok && entry.value.body.toString())).toEqual([
      deep,
      escaped,
    ]);
  });
});

const kind = fc.oneof(fc.constantFrom('sale', 'refund', 'inventory'), fc.jsonValue());
const body = fc.oneof(fc.object({ maxDepth: 1 }), fc.jsonValue());

describe('a batch', () => {
  const fits = new Ajv2020({ strict: false }).compile(batchSchema);

  it('passes as a whole where the published schema passes it', () => {
    const entry = fc.oneof(fc.record({ kind, body }, { requiredKeys: [] }), fc.jsonValue());
    const records = fc.oneof(fc.array(entry, { maxLength: 4 }), fc.jsonValue());
    fc.assert(
      fc.property(fc.record({ records }, { requiredKeys: [] }), (batch) => {
        const sent = JSON.parse(JSON.stringify(batch)) as { records?: { body?: unknown }[] };
        const read = readBatch(bytes(JSON.stringify(batch)));
        // That a body is an object is for the schema of its kind to say.
        const isObject = (one: unknown) =>
          typeof one === 'object' && one !== null && !Array.isArray(one);
        const accepted =
          read.ok &&
          read.value.every(({ ok }) => ok) &&
          (sent.records ?? []).every((one) => isObject(one.body));
        expect(accepted).toBe(fits(sent));
      })
    );
  });

  it('has its own examples pass', () => {
    for (const example of batchSchema.examples as object[]) {
      expect(fits(example)).toBe(true);
      const read = readBatch(bytes(JSON.stringify(example)));
      expect(read.ok && read.value.every(({ ok }) => ok)).toBe(true);
    }
  });

  it('whatever bytes it has, is read without an error', () => {
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array(), fc.string().map(bytes)), (raw) => {
        expect(typeof readBatch(raw).ok).toBe('boolean');
        expect(typeof readValidation(raw).ok).toBe('boolean');
      })
    );
  });
});
