import {
  bagOf,
  isRepeated,
  newRow,
  retyped,
  rowsOf,
  sameBag,
  valuesOf,
} from '../../../admin/src/content-manager/value-rows';
import { searchOf, shownView, viewsOf } from '../../../admin/src/content-manager/views';

describe('an object as rows', () => {
  it('comes back unchanged, whatever its values are', () => {
    const bag = { text: 'a', number: 0, yes: true, none: null, parts: { a: [1] }, list: [] };
    expect(valuesOf(rowsOf(bag))).toEqual(bag);
    expect(rowsOf(bag).map(({ type }) => type)).toEqual(
      'text number boolean text other other'.split(' ')
    );
  });

  it('leaves out rows without a name, and the second one of a name', () => {
    const rows = [newRow('a', 1), newRow(' ', 2), newRow('a ', 3)];
    expect(valuesOf(rows)).toEqual({ a: 1 });
    expect(rows.map((row) => isRepeated(rows, row))).toEqual([false, false, true]);
  });

  it('takes nothing and an empty list for empty, and refuses other shapes', () => {
    for (const empty of [null, undefined, '', [], {}]) expect(bagOf(empty)).toEqual({});
    for (const other of [[1], 'text', 5]) expect(bagOf(other)).toBeNull();
  });

  it('keeps what it can if the type changes', () => {
    const to = (value: unknown, type: 'text' | 'number' | 'boolean') =>
      retyped(newRow('a', value), type).value;
    expect([to('5', 'number'), to('x', 'number'), to('', 'number')]).toEqual([5, null, null]);
    expect([to(5, 'text'), to(null, 'text'), to(true, 'text')]).toEqual(['5', '', 'true']);
    expect([to('true', 'boolean'), to('x', 'boolean')]).toEqual([true, false]);
  });

  it('is the same in another order', () => {
    expect(sameBag({ a: 1, b: 2 }, { b: 2, a: 1 })).toBe(true);
    expect(sameBag({ a: 1 }, { a: '1' })).toBe(false);
  });
});

describe('views of a list', () => {
  const now = new Date(2026, 2, 29, 13, 30);
  const views = viewsOf('task', { now, userId: 7 });

  it('end at the reader’s midnight, also on a day of 23 or 25 hours', () => {
    const today = views.find(({ label }) => label === 'views.today')!;
    expect(today.conditions.slice(2).map(([, value]) => new Date(value).getHours())).toEqual([
      0, 0,
    ]);
    expect(new Date(today.conditions[3]![1]).getDate()).toBe(30);
  });

  it('are found in an address by their shape', () => {
    const parse = (search: string) =>
      [...new URLSearchParams(search)]
        .filter(([key]) => key.startsWith('filters'))
        .map(([key, value]) =>
          [...key.matchAll(/\[(\w+|\$\w+)\]/g)]
            .slice(2)
            .reduceRight<unknown>((inner, [, name]) => ({ [name!]: inner }), value)
        );
    for (const view of views) expect(shownView(views, parse(searchOf(view, '')))).toBe(view);
    expect(shownView(views, [])).toBeUndefined();
    expect(shownView(views, [{ title: { $eq: 'a' } }])).toBeUndefined();
  });

  it('replace the filters of an address and keep the rest', () => {
    const bin = views.at(-1)!;
    const from = '?page=3&_q=a&sort=title:ASC&filters[$and][0][title][$eq]=b';
    expect(decodeURIComponent(searchOf(bin, from))).toBe(
      '?page=1&_q=a&sort=title:ASC&filters[$and][0][trashed_at][$notNull]=true'
    );
  });

  it('are two for other records, and none of one’s own without a user', () => {
    expect(viewsOf('deal', { now }).map(({ label }) => label)).toEqual(['views.all', 'views.bin']);
    expect(viewsOf('task', { now }).map(({ label }) => label)).not.toContain('views.mine');
  });
});
