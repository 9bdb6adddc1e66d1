import type { Core } from '@strapi/strapi';
import { insertedRow } from '../../../server/src/database/written-rows';

const attributes = {
  name: { type: 'string' },
  score: { type: 'integer' },
  status: { type: 'string', default: 'new' },
  fields: { type: 'json' },
  price: { type: 'decimal' },
  made: { type: 'datetime' },
};

const told = (data: object, columns: readonly string[], client = 'postgres') => {
  const db = { dialect: { client }, metadata: { get: () => ({ attributes }) } };
  const type = { uid: 'x', columns };
  return insertedRow({ db } as unknown as Core.Strapi, type, { documentId: 'a', ...data });
};

describe('a row that was just inserted', () => {
  it('has what was given, and nothing where nothing was', () => {
    const made = new Date(1_790_000_000_000);
    const data = { name: 'Zoë', score: 3, fields: { plan: ['gold'] }, made };
    expect(told(data, ['name', 'score', 'fields', 'made'])).toEqual({ documentId: 'a', ...data });
    expect(told({}, ['name', 'score'])).toEqual({ documentId: 'a', name: null, score: null });
  });

  it.each([
    ['a default that the host fills in', {}, 'status'],
    ['a number that the database rounds', { price: 1.005 }, 'price'],
    ['half a character, which no database keeps', { name: 'a\ud800' }, 'name'],
    ['a number for a text', { name: 5 }, 'name'],
    ['a text for a number', { score: '5' }, 'score'],
    ['an object that writes itself', { fields: new Date() }, 'fields'],
    ['a time as text', { made: '2026-01-01' }, 'made'],
  ])('is read for %s', (_what, data, name) => {
    expect(told(data, [name])).toBeNull();
  });

  it('is read on MySQL, which may cut what is too long', () => {
    expect(told({ name: 'a' }, ['name'], 'mysql')).toBeNull();
  });
});
