import fc from 'fast-check';
import { thin } from '../../../server/src/webhooks/rules/thin-payload';

describe('a thin payload', () => {
  it('keeps ids, what changed and where it came from, in the shape that the data has', () => {
    const contact = {
      id: 'c1',
      email: 'ada@example.test',
      company_id: 7,
      tag_ids: [1, 2],
      address: { street: 'Main', country_id: 44 },
      notes: ['private'],
      fields: {},
    };
    const data = { contact, tag: { id: 't', slug: 'vip' }, changed: ['email'], source: 'form' };
    expect(thin(data)).toEqual({
      contact: {
        id: 'c1',
        company_id: 7,
        tag_ids: [1, 2],
        address: { country_id: 44 },
        fields: {},
      },
      tag: { id: 't' },
      changed: ['email'],
      source: 'form',
    });
  });

  it('thins each of a list of objects', () => {
    const answers = [{ id: 'mail', label: 'E-mail', type: 'email', value: 'ada@example.test' }];
    expect(thin({ answers, form_id: 3, note: null })).toEqual({
      answers: [{ id: 'mail', type: 'email' }],
      form_id: 3,
    });
  });

  it('has no value under any other name, whatever the data', () => {
    const leaves = (value: unknown, name = ''): string[] =>
      typeof value === 'object' && value !== null
        ? Object.entries(value).flatMap(([key, one]) =>
            leaves(one, Array.isArray(value) ? name : key)
          )
        : [name];
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (data) => {
        for (const name of leaves(thin(data))) {
          expect(name).toMatch(/^(?:id|changed|source|type)$|_ids?$/);
        }
      })
    );
  });
});
