import { hostFailure } from '../../../server/src/pos/intake/wire';
import { RECORD_SCHEMAS } from '../../../server/src/pos/rules/schemas';
import { ERROR_STATUS, RECORD_KINDS, type RecordKind } from '../../../server/src/pos/rules/records';
import { readDocument } from '../docs/support/markdown';

/** docs/contract-pos.md and docs/tills.md, against what tills are served and answered. */

const contract = readDocument('docs/contract-pos.md');
const tills = readDocument('docs/tills.md');

const section = (markdown: string, heading: string): string =>
  markdown.split(new RegExp(`^## ${heading}$`, 'm'))[1]?.split(/^## /m)[0] ?? '';

/** The tables of a text: for each the cells of its rows, without the headings. */
const tablesOf = (markdown: string): string[][][] =>
  markdown
    .split(/\n\n+/)
    .filter((block) => block.startsWith('|'))
    .map((block) =>
      block
        .trim()
        .split('\n')
        .slice(2)
        .map((row) =>
          row
            .split('|')
            .slice(1, -1)
            .map((cell) => cell.trim())
        )
    );

const codesIn = (text: string): string[] =>
  [...text.matchAll(/`(\w+)`/g)].map(([, code = '']) => code);

interface Schema {
  $id: string;
  required: string[];
  anyOf?: { required: string[] }[];
  properties: Record<string, { type: string; minimum?: number; items?: Schema }>;
  $defs?: { line_item: Schema };
}

const SCHEMAS = RECORD_SCHEMAS as unknown as Record<RecordKind, Schema>;

const HEADINGS: Record<RecordKind, string> = {
  sale: 'Sale',
  refund: 'Refund',
  inventory: 'Inventory',
};

/** `[field, type, needed]` of each row, against the same of a schema. */
const expectFields = (rows: readonly string[][], schema: Schema): void => {
  const told = rows.map(([field = '', type = '', needed = '']) => [
    field.replaceAll('`', ''),
    type,
    needed === 'yes',
  ]);
  const served = Object.entries(schema.properties).map(([field, { type }]) => [
    field,
    type,
    schema.required.includes(field),
  ]);
  expect(served.sort()).toEqual(told.sort());
};

describe.each(RECORD_KINDS)('the contract of %s', (kind) => {
  const text = section(contract, HEADINGS[kind]);
  const schema = SCHEMAS[kind];
  const [fields = [], lines = []] = tablesOf(text);

  it('names its route and its schema', () => {
    expect(text).toContain(`\`POST /${kind}\`, schema \`${schema.$id}\``);
  });

  it('has the fields, types and needs of the published schema', () => {
    expect(fields.length).toBeGreaterThan(4);
    expectFields(fields, schema);
  });

  it('has those of its lines', () => {
    if (kind === 'refund') {
      expect(schema.$defs).toEqual(SCHEMAS.sale.$defs);
    } else if (kind === 'sale') {
      const item = schema.$defs?.line_item;
      if (!item) throw new Error('no lines');
      expectFields(lines, item);
      const either = lines.flatMap(([field = '', , needed]) =>
        needed === 'one of these' || needed === 'at least' ? [[field.replaceAll('`', '')]] : []
      );
      expect(item.anyOf?.map(({ required }) => required)).toEqual(either);
    } else {
      const rule = fields.find(([field]) => field === '`counts`')?.[3] ?? '';
      expect(codesIn(rule)).toEqual(Object.keys(schema.properties.counts?.items?.properties ?? {}));
    }
  });

  it('and docs/tills.md ask for one scope, the one that is checked', () => {
    const route = tills.split('\n').find((row) => row.startsWith(`| POST   | \`/${kind}\``)) ?? '';
    expect(route.match(/`\w+:write`/g)).toEqual([`\`${kind}:write\``]);
    const scopes = contract.split('\n').find((row) => row.startsWith('| scopes ')) ?? '';
    expect(scopes).toContain(`${kind}:write`);
  });
});

describe('the codes of refusals', () => {
  const statuses: Readonly<Record<string, number>> = ERROR_STATUS;
  const codes = Object.keys(ERROR_STATUS);

  it('are those of docs/tills.md, each with its status; the rest are the host’s', () => {
    const [rows = []] = tablesOf(section(tills, 'Answers'));
    const told = rows.flatMap(([status = '', cell = '']) =>
      status.startsWith('4') || status.startsWith('503')
        ? codesIn(cell.split(', with')[0] ?? '').map((code) => [code, Number(status)] as const)
        : []
    );
    for (const [code, status] of told) {
      expect([code, statuses[code] ?? hostFailure(status).code]).toEqual([
        code,
        code in statuses ? status : code,
      ]);
    }
    expect(told.map(([code]) => code)).toEqual(expect.arrayContaining(codes));
  });

  it('of a 401 are those that the contract names as its causes', () => {
    const text = section(contract, 'Authentication');
    const named = codesIn(text).filter((code) => code.includes('_') && code !== 'skew_seconds');
    expect(named.sort()).toEqual(codes.filter((code) => statuses[code] === 401).sort());
  });

  it('have statuses of the answers to which the contract leads', () => {
    expect(section(contract, 'Answers')).toContain('(tills.md#answers)');
    const [rows = []] = tablesOf(section(tills, 'Answers'));
    const known = rows.map(([status]) => Number(status));
    expect(codes.filter((code) => !known.includes(statuses[code] ?? 0))).toEqual([]);
  });

  it('stand in the order in which docs/tills.md says that the checks run', () => {
    const sentence = /The checks run in this order.*?stale count \(409\)/.exec(tills)?.[0] ?? '';
    const steps = sentence.match(/`\w+`|\btime\b|\bsignature\b|\b\d{3}\b/g) ?? [];
    const told = steps
      .filter((step) => step !== '200')
      .map((step) =>
        step === 'time'
          ? 'timestamp_outside_window'
          : step === 'signature'
            ? 'signature_mismatch'
            : step.replaceAll('`', '')
      );
    const held = codes.map((code) => (statuses[code] === 401 ? code : String(statuses[code])));
    expect(held).toEqual(told);
  });
});
