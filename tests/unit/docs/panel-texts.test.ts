import fs from 'node:fs';
import path from 'node:path';
import { readTextFile, TEXT_FILES } from '../../support/translations';
import { readDocument, ROOT } from './support/markdown';

/** Documents quote texts of the panel in bold, `**Stock > Transfers**`: the panel has to have them. */

const texts = new Set(
  TEXT_FILES.flatMap((part) => Object.values(readTextFile(part, 'en'))).map((text) =>
    text.replace(/\.$/, '')
  )
);

/** Texts of Strapi's own panel, roles, and fields as the Content Manager shows them. */
const OF_THE_HOST = [
  'Settings',
  'Roles',
  'Plugins',
  'API Tokens',
  'Content Manager',
  'CRM Manager',
  'Switchboard',
  'Tags',
];

/** Texts of other products, by the page that tells how to use them. */
const OF_OTHERS: Record<string, string[]> = {
  'docs/automation-tools.md': [
    ...['Webhook', 'Respond', 'Raw Body', 'Authentication', 'Header Auth'],
    ...['Catch Raw Hook', 'Custom webhook'],
  ],
  'docs/strapi-cloud.md': ['Variables'],
  'docs/performance.md': ['Bold'],
};

/** For people at the screen: there, each bold text without punctuation is one of the panel. */
const FOR_USERS = ['docs/contacts.md', 'docs/shop.md'];

const pages = [
  'README.md',
  ...fs
    .readdirSync(path.join(ROOT, 'docs'))
    .filter((name) => name.endsWith('.md') && name !== 'events.md')
    .map((name) => `docs/${name}`),
];

/** At the head of an item, a cell or a paragraph a bold text is mostly emphasis. */
const HEAD = /(^|[|]) *([-*] |\d+\. )?$/;

const quoted = (page: string): string[] =>
  readDocument(page)
    .replace(/^ *```[\s\S]*?^ *```$/gm, '')
    .replace(/`[^`\n]*`/g, '')
    .split('\n')
    .flatMap((line) => [
      ...[...line.matchAll(/\*\*([^*]+)\*\*/g)].flatMap(({ 1: text = '', index }) => {
        const isAtHead = HEAD.test(line.slice(0, index)) && !FOR_USERS.includes(page);
        const isLabel = / > /.test(text) || (!isAtHead && /^[A-Z][^.:?[]*$/.test(text));
        return isLabel ? text.split(' > ') : [];
      }),
      ...[...line.matchAll(/(?<!\w)_([^_]+ > [^_]+)_/g)].flatMap(([, text = '']) =>
        text.split(' > ')
      ),
    ]);

it.each(pages)('%s quotes texts that the panel has', (page) => {
  const known = [...OF_THE_HOST, ...(OF_OTHERS[page] ?? [])];
  expect(quoted(page).filter((text) => !texts.has(text) && !known.includes(text))).toEqual([]);
});

it('quotes are found in paths, in sentences and in italics', () => {
  const all = pages.flatMap(quoted);
  expect(all).toEqual(expect.arrayContaining(['Stock', 'Transfers', 'Modules', 'Resend']));
  expect(all.length).toBeGreaterThan(40);
});

it('events have the same names in the documents as in the panel', () => {
  const labels = [...readDocument('docs/events.md').matchAll(/^\*\*([^*]+)\.\*\* /gm)];
  expect(labels.length).toBeGreaterThan(40);
  expect(labels.flatMap(([, label = '']) => (texts.has(label) ? [] : label))).toEqual([]);
});

it('no text is allowed for nothing', () => {
  const all = new Set(pages.flatMap(quoted));
  const allowed = [...OF_THE_HOST, ...Object.values(OF_OTHERS).flat()];
  expect(allowed.filter((text) => !all.has(text))).toEqual([]);
});
