import type { Feature } from '../../server/src/feature';
import { createParts } from '../../server/src/parts';

const features: Feature[] = [
  {
    contentTypes: { webhook: { schema: {} } },
    services: { webhooks: 1 },
    routes: { crm: [{ method: 'GET', path: '/webhooks', handler: 'webhooks.find' }] },
  },
  {
    option: 'crm',
    contentTypes: { contact: { schema: {} } },
    services: { email: 1 },
    routes: { crm: [{ method: 'GET', path: '/contacts', handler: 'contacts.find' }] },
  },
  {
    option: 'pos',
    controllers: { tills: {} },
    routes: { pos: [{ method: 'GET', path: '/ping', handler: 'tills.ping' }] },
  },
];

describe('the parts of a plugin', () => {
  const paths = ({ routes }: ReturnType<typeof createParts>) =>
    [...routes.crm.routes, ...routes.pos.routes].map(({ path }) => path);

  test('are all there unless the site does without', () => {
    const parts = createParts(features);
    expect(Object.keys(parts.contentTypes)).toEqual(['webhook', 'contact']);
    expect(paths(parts)).toEqual(['/webhooks', '/contacts', '/ping']);
  });

  test('are left out by feature, and are back for the next site of the process', () => {
    const parts = createParts(features);
    parts.offer({ crm: false, pos: false });
    expect(Object.keys(parts.contentTypes)).toEqual(['webhook']);
    expect(Object.keys(parts.services)).toEqual(['webhooks']);
    expect(Object.keys(parts.controllers)).toEqual([]);
    expect(paths(parts)).toEqual(['/webhooks']);
    parts.offer({ crm: true, pos: false });
    expect(Object.keys(parts.contentTypes)).toEqual(['webhook', 'contact']);
    expect(paths(parts)).toEqual(['/webhooks', '/contacts']);
  });

  test('that are left out can still be extended by the site, to no effect', () => {
    const { contentTypes, offer } = createParts(features);
    offer({ crm: false, pos: true });
    // As the host's loader does with a schema in src/extensions: a type it does not find, it makes.
    const name = 'contact';
    if (!contentTypes[name]) contentTypes[name] = { schema: { made: true } };
    else contentTypes[name].schema = { extended: true };
    expect(Object.keys(contentTypes)).toEqual(['webhook']);
    offer({ crm: true, pos: true });
    expect(contentTypes[name]).toEqual({ schema: { extended: true } });
  });
});
