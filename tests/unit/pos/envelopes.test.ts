import Ajv2020 from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { batchSteps, statusSteps, validationSteps } from '../../../server/src/pos/rules/envelopes';
import { outlineSteps } from '../../../server/src/pos/rules/strict-json';
import { inOneGo } from '../../../server/src/runtime/event-loop';
import { batchSchema } from '../../../server/src/pos/rules/schemas';

const readBatch = (raw: Uint8Array) => inOneGo(batchSteps(raw));

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
  const partsOf = (one: string, most: number) =>
    inOneGo(outlineSteps(one, [most]))?.parts.map(({ key, text }) => ({ key, text }));

  it('are the texts that it was put together from', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.string(), text)), fc.nat(), (pairs, most) => {
        const members = pairs.map(([key, value]) => `${JSON.stringify(key)}: ${value}`);
        const object = ` {\n${members.join(' , ')} } `;
        expect(partsOf(object, Infinity)).toEqual(pairs.map(([key, text]) => ({ key, text })));
        const values = pairs.map(([, value]) => value);
        expect(partsOf(` [${values.join(' ,\t')} ]`, most)).toEqual(
          values.slice(0, most).map((text) => ({ key: '', text }))
        );
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

const isJson = (one: string): boolean => {
  try {
    JSON.parse(one);
    return true;
  } catch {
    return false;
  }
};

describe('the check of a text', () => {
  const check = (one: string): boolean => inOneGo(outlineSteps(one, [])) !== null;

  it('says what JSON.parse says', () => {
    const piece = fc.constantFrom(
      ...['{', '}', '[', ']', ':', ',', ' ', '\n', '"', '"a"', '"a":', '\\u00e9', '\\"', '\\x'],
      ...['0', '01', '-', '1', '.5', 'e3', 'E+', 'true', 'null', 'nul', '\u0001', 'é', '"é"']
    );
    const broken = fc.array(piece, { maxLength: 12 }).map((parts) => parts.join(''));
    fc.assert(
      fc.property(fc.oneof(text, broken, fc.string()), (one) => {
        expect(check(one)).toBe(isJson(one));
      }),
      { numRuns: 500 }
    );
  });

  it('stops on its way, and again and again', () => {
    const many = `{"records":[${'1,'.repeat(100_000)}1]}`;
    const steps = outlineSteps(many, []);
    let stops = 0;
    while (!steps.next().done) stops += 1;
    expect(stops).toBeGreaterThan(20);
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
        expect(typeof inOneGo(validationSteps(raw)).ok).toBe('boolean');
      })
    );
  });

  const numbered = (count: number): string =>
    Array.from({ length: count }, (_, index) => `"x${index}":0`).join();
  const record = '{"kind":"sale","body":{}}';

  it('has few members beside the records', () => {
    expect(readBatch(bytes(`{"records":[${record}],${numbered(20)}}`)).ok).toBe(true);
    const read = readBatch(bytes(`{"records":[${record}],${numbered(21)}}`));
    expect(read).toEqual({
      ok: false,
      issue: { field: 'body', message: 'body must have at most 21 members' },
    });
    const asked = `{"external_ids":["a"],${numbered(21)}}`;
    expect(inOneGo(statusSteps(bytes(asked))).ok).toBe(false);
  });

  it('has few members in an entry, and others are judged by themselves', () => {
    const large = record.replace('}}', `},${numbered(21)}}`);
    const read = readBatch(bytes(`{"records":[${large},${record}]}`));
    expect(read.ok && read.value.map(({ ok }) => ok)).toEqual([false, true]);
  });

  it('is read in steps', () => {
    const records = Array.from({ length: 100 }, () => record).join();
    const steps = batchSteps(bytes(`{"records":[${records}],"x":[${'1,'.repeat(20_000)}1]}`));
    let stops = 0;
    while (!steps.next().done) stops += 1;
    expect(stops).toBeGreaterThan(100);
  });
});
