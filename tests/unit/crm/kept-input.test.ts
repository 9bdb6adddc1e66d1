import type { Core } from '@strapi/strapi';
import type { AttributeShape, Source } from '../../../server/src/crm/mapping/mapping';
import { keptInput } from '../../../server/src/crm/resources/to-data';

const sourceOf = (attributes: Record<string, AttributeShape & { enum?: string[] }>): Source => ({
  kind: 'contact',
  uid: 'api::lead.lead',
  own: false,
  tags: null,
  fields: Object.entries(attributes).map(([path, shape]) => ({
    path,
    type: 'text',
    bookkeeping: false,
    attribute: path,
    shape,
    compute: null,
  })),
});

const site = () => {
  const lines: string[] = [];
  const strapi = { log: { warn: (line: string) => lines.push(line) } } as unknown as Core.Strapi;
  return { strapi, lines };
};

describe('what a content type does not keep', () => {
  it('is left out, but for the address and what names the contact, and said once', () => {
    const { strapi, lines } = site();
    const source = sourceOf({ first_name: { type: 'string' } });
    const input = { email: 'a@x.test', name: 'A', first_name: 'Ada', score: 3, tags: ['VIP'] };
    const kept = { email: 'a@x.test', name: 'A', first_name: 'Ada' };
    expect(keptInput(strapi, source, input)).toEqual(kept);
    expect(keptInput(strapi, source, { ...input, score: null })).toEqual(kept);
    expect(lines).toEqual([
      expect.stringMatching(/api::lead\.lead keeps no score, tags of a contact/),
    ]);
  });

  it('is a value that an enumeration of the site does not list', () => {
    const { strapi, lines } = site();
    const source = sourceOf({ source: { type: 'enumeration', enum: ['web', 'phone'] } });
    expect(keptInput(strapi, source, { source: 'form' })).toEqual({});
    expect(keptInput(strapi, source, { source: 'web' })).toEqual({ source: 'web' });
    expect(lines).toHaveLength(1);
  });

  it('is found in `fields` by name where no attribute holds them all', () => {
    const { strapi } = site();
    const source = sourceOf({ 'fields.size': { type: 'string' } });
    const input = { fields: { size: 'XL', colour: 'red' } };
    expect(keptInput(strapi, source, input)).toEqual({ fields: { size: 'XL' } });
    expect(keptInput(strapi, source, { fields: { colour: 'red' } })).toEqual({});
    const bag = sourceOf({ fields: { type: 'json' } });
    expect(keptInput(strapi, bag, input)).toEqual(input);
  });
});
