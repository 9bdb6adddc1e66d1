import { updateFromValues } from '../../../server/src/database/dialects/shared';

describe('a batch of owned updates', () => {
  it.each([true, false])('never names two columns of its values alike (cast: %s)', (cast) => {
    const table = { name: 't', schema: undefined, groupColumn: 'g', columns: {} };
    const set = { id_text: 'x', due_at: null, owner: null };
    const { sql, bindings } = updateFromValues(table, [{ id: 1, owner: 'me', set }], cast);
    const count = /WITH v\(([^)]*)\)/.exec(sql)![1]!.split(',').length;
    const names = bindings.slice(0, count);
    expect(names).toHaveLength(5);
    expect(new Set(names).size).toBe(names.length);
  });

  it.each([true, false])('writes once what all rows get alike (cast: %s)', (cast) => {
    const columns = { status: 'text', finished_at: 'bigint', error: 'text' } as const;
    const table = { name: 't', schema: undefined, groupColumn: 'g', columns };
    const rows = [1, 2].map((id) => ({
      id,
      owner: `owner ${id}`,
      set: { status: 'sent', finished_at: id * 100, error: null },
    }));
    const { sql, bindings } = updateFromValues(table, rows, cast);
    expect(bindings).toEqual([
      ...['k_id', 'k_owner', 'v_finished_at'],
      ...[1, 'owner 1', 100],
      ...[2, 'owner 2', 200],
      't',
      ...['status', 'sent', 'error', null],
      ...['finished_at', 'v_finished_at'],
    ]);
    expect(sql.match(/\?+/g)).toHaveLength(bindings.length);
  });
});
