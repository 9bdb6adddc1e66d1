import type { App } from '../../../server/src/app';
import type { AttributeShape, Source } from '../../../server/src/crm/mapping/sources';
import { keptInput } from '../../../server/src/crm/resources/to-data';

const sourceOf = (attributes: Record<string, AttributeShape & { enum?: string[] }>): Source => ({
  kind: 'contact',
  uid: 'api::lead.lead',
  own: false,
  tags: null,
  fields: Object.entries(attributes).map(([path, shape]) => ({
    path,
    keys: [path],
    type: 'text',
    bookkeeping: false,
    attribute: path,
    shape,
    compute: null,
  })),
});

const site = () => {
  const lines: string[] = [];
  const parts = new Map<unknown, unknown>();
  const app = {
    log: { warn: (line: string) => lines.push(line) },
    part: (make: () => unknown) => parts.get(make) ?? parts.set(make, make()).get(make),
  } as unknown as App;
  return { app, lines };
};

describe('what a content type does not keep', () => {
  it('is left out, but for the address and what names the contact, and said once', () => {
    const { app, lines } = site();
    const source = sourceOf({ first_name: { type: 'string' } });
    const input = { email: 'a@x.test', name: 'A', first_name: 'Ada', score: 3, tags: ['VIP'] };
    const kept = { email: 'a@x.test', name: 'A', first_name: 'Ada' };
    expect(keptInput(app, source, input)).toEqual(kept);
    expect(keptInput(app, source, { ...input, score: null })).toEqual(kept);
    expect(lines).toEqual([
      expect.stringMatching(/api::lead\.lead keeps no score, tags of a contact/),
    ]);
  });

  it('is a value that an enumeration of the site does not list', () => {
    const { app, lines } = site();
    const source = sourceOf({ source: { type: 'enumeration', enum: ['web', 'phone'] } });
    expect(keptInput(app, source, { source: 'form' })).toEqual({});
    expect(keptInput(app, source, { source: 'web' })).toEqual({ source: 'web' });
    expect(lines).toHaveLength(1);
  });

  it('is found in `fields` by name where no attribute holds them all', () => {
    const { app } = site();
    const source = sourceOf({ 'fields.size': { type: 'string' } });
    const input = { fields: { size: 'XL', colour: 'red' } };
    expect(keptInput(app, source, input)).toEqual({ fields: { size: 'XL' } });
    expect(keptInput(app, source, { fields: { colour: 'red' } })).toEqual({});
    const bag = sourceOf({ fields: { type: 'json' } });
    expect(keptInput(app, bag, input)).toEqual(input);
  });
});
