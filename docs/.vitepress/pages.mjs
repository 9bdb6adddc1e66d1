// The menu of the site. A page has one name: its first heading.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const DOCS = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');

/** The title of a page of docs/, named without its extension. */
export const titleOf = (file) =>
  /^# (.+)$/m.exec(fs.readFileSync(path.join(DOCS, `${file}.md`), 'utf8'))[1];

const group = (text, ...files) => ({
  text,
  items: files.map((file) => ({ text: titleOf(file), link: `/${file}` })),
});

export const sidebar = [
  group('Start', 'install', 'options', 'commands', 'local-testing', 'troubleshooting'),
  group('Using it', 'contacts', 'shop'),
  group(
    'Events out',
    ...['receivers', 'events', 'automation-tools', 'crm', 'any-content-type', 'email'],
    ...['from-strapi-webhooks', 'from-wordpress', 'plugin-developers', 'management-api'],
    'contract-webhooks'
  ),
  group('Tills in', 'tills', 'contract-pos'),
  group(
    'Running a site',
    ...['operations', 'alerts', 'monitoring', 'resending', 'logs', 'limits', 'databases'],
    ...['sending', 'several-nodes', 'private-addresses', 'proxy', 'keys', 'retention', 'backup'],
    ...['upgrading', 'features', 'scaling', 'reliability', 'performance', 'docker'],
    ...['strapi-cloud', 'security', 'privacy', 'uninstall']
  ),
  group('About Switchboard', 'comparison', 'changelog', 'decisions/README'),
];
