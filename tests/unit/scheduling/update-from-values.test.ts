import { updateFromValues } from '../../../server/src/database/dialects/update-from-values';

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
});
