import fs from 'node:fs';
import { Readable } from 'node:stream';
import type { Core } from '@strapi/strapi';
import plugin, {
  type EmailService,
  type ImportReport,
  type Recorded,
  type SwitchboardServices,
} from '../../server/src';
import { readDocument, squeezed } from './docs/support/markdown';

/** What docs/plugin-developers.md says that other plugins may call, and how it is typed. */

const document = readDocument('docs/plugin-developers.md');

// <accessor>
export const switchboard = <Uid extends keyof SwitchboardServices>(strapi: Core.Strapi, uid: Uid) =>
  strapi.service(uid) as unknown as SwitchboardServices[Uid];
// </accessor>

/** A key that is missing, or one too many, does not compile. */
const SERVICES: Record<keyof SwitchboardServices, string[]> = {
  'plugin::switchboard.events': ['send'],
  'plugin::switchboard.email': [
    'opened',
    'clicked',
    'bounced',
    'complained',
    'campaignSent',
    'received',
  ] satisfies (keyof EmailService)[],
  'plugin::switchboard.contact-import': ['run'],
};
const cases = Object.entries(SERVICES);

it.each(cases)('%s is a service of the plugin with the methods of its type', (uid, methods) => {
  const factories = plugin.services as Record<string, (context: object) => object>;
  const service = factories[uid.replace('plugin::switchboard.', '')]!({
    strapi: { has: () => true, get: () => ({}) },
  });
  expect(Object.keys(service).sort()).toEqual([...methods].sort());
});

const documents = [document, readDocument('docs/crm.md'), readDocument('docs/email.md')].join();

it.each(cases)('%s is documented', (uid, methods) => {
  expect(document).toContain(`| \`${uid}\``);
  for (const method of methods) expect(documents).toMatch(new RegExp(`[.)]${method}\\(`));
});

it('the accessor of the documentation compiles: it is this file’s', () => {
  const source = /<accessor>([\s\S]*?)\/\/ <\/accessor>/.exec(fs.readFileSync(__filename, 'utf8'));
  expect(source?.[1]).toContain('SwitchboardServices[Uid]');
  expect(squeezed(document)).toContain(squeezed(source?.[1] ?? ''));
});

/** For the compiler alone, and never run: what each service takes and answers. */
export const typed = async (strapi: Core.Strapi): Promise<[number, Recorded, ImportReport]> => {
  const email = switchboard(strapi, 'plugin::switchboard.email');
  // @ts-expect-error -- a click has an address
  await email.clicked({ campaign: 'c', contact: 'p' });
  // @ts-expect-error -- services that are not public have no type
  switchboard(strapi, 'plugin::switchboard.publisher');
  return [
    await switchboard(strapi, 'plugin::switchboard.events').send('loyalty.earned', {}),
    await email.clicked({ campaign: 'c', contact: 'p', url: 'https://example.test/' }),
    await switchboard(strapi, 'plugin::switchboard.contact-import').run(Readable.from(['email'])),
  ];
};
