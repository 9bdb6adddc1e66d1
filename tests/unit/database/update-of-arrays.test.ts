import fc from 'fast-check';
import { types as postgresTypes } from 'pg';
import { updateOfArrays } from '../../../server/src/database/dialects/postgres';

const TEXTS = 1009;
/** The driver's own reader of what the database sends. */
const readTexts = postgresTypes.getTypeParser(TEXTS, 'binary') as (
  sent: Buffer
) => (string | null)[];

/** The values of a statement, with arrays of texts as the database reads them. */
const readAll = (bindings: readonly unknown[]): unknown[] =>
  bindings.map((value) => (Buffer.isBuffer(value) ? readTexts(value) : value));

describe('a batch of owned updates', () => {
  it('takes an array a column, however many rows there are', () => {
    const table = { name: 't', schema: undefined };
    const types = { id_text: 'text', due_at: 'bigint', owner: 'text' };
    const set = { id_text: 'x', due_at: null, owner: null };
    const statementOf = (count: number) =>
      updateOfArrays(
        table,
        types,
        Array.from({ length: count }, (_, at) => ({
          id: at + 1,
          owner: 'me',
          set: { ...set, id_text: `${at}` },
        }))
      );
    expect(statementOf(2).sql).toBe(statementOf(200).sql);
    expect(statementOf(2).sql).toContain('unnest(?::integer[], ?::text[], ?::text[])');
    const one = updateOfArrays(table, types, [{ id: 1, owner: 'me', set }]);
    expect(readAll(one.bindings).slice(-5)).toEqual([[1], ['me'], ['x'], [null], [null]]);
  });

  it('writes once what all rows get alike', () => {
    const table = { name: 't', schema: undefined };
    const types = { status: 'character varying', finished_at: 'bigint', error: 'text' };
    const rows = [1, 2].map((id) => ({
      id,
      owner: `owner ${id}`,
      set: { status: 'sent', finished_at: id * 100, error: null },
    }));
    const { sql, bindings } = updateOfArrays(table, types, rows);
    expect(readAll(bindings)).toEqual(['sent', null, [1, 2], ['owner 1', 'owner 2'], [100, 200]]);
    expect(sql).toMatch(/^UPDATE "t" SET "status" = .*"error" = .*"finished_at" = v\.c2 FROM/);
    expect(sql.match(/\?+/g)).toHaveLength(bindings.length);
  });

  it('brings texts to the database as they are, whatever is in them', () => {
    const text = fc.option(fc.string({ unit: 'binary', maxLength: 30 }));
    const rows = fc.array(text, { minLength: 1 });
    fc.assert(
      fc.property(rows, (texts) => {
        const set = texts.map((said, at) => ({ id: at, set: { said, n: at } }));
        const types = { said: 'text', n: 'integer' };
        const { bindings } = updateOfArrays({ name: 't', schema: undefined }, types, [
          { id: -1, set: { said: 'first', n: -1 } },
          { id: -2, set: { said: null, n: -2 } },
          ...set,
        ]);
        expect(readAll(bindings)[1]).toEqual(['first', null, ...texts]);
      })
    );
  });
});
