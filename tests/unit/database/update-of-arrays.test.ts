import { updateOfArrays } from '../../../server/src/database/dialects/postgres';

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
    expect(one.bindings.slice(-5)).toEqual([[1], ['me'], ['x'], [null], [null]]);
  });

  it('writes once what all rows get alike', () => {
    const table = { name: 't', schema: undefined };
    const types = { status: 'text', finished_at: 'bigint', error: 'text' };
    const rows = [1, 2].map((id) => ({
      id,
      owner: `owner ${id}`,
      set: { status: 'sent', finished_at: id * 100, error: null },
    }));
    const { sql, bindings } = updateOfArrays(table, types, rows);
    expect(bindings).toEqual(['sent', null, [1, 2], ['owner 1', 'owner 2'], [100, 200]]);
    expect(sql).toMatch(/^UPDATE "t" SET "status" = .*"error" = .*"finished_at" = v\.c2 FROM/);
    expect(sql.match(/\?+/g)).toHaveLength(bindings.length);
  });
});
