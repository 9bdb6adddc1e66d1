import fs from 'node:fs';
import path from 'node:path';
import { localLinks, readDocument, ROOT } from './support/markdown';

/** The site of the documentation: a page that no menu names is not found. */

const pages = fs
  .readdirSync(path.join(ROOT, 'docs'))
  .filter((name) => name.endsWith('.md') && name !== 'index.md')
  .map((name) => name.replace(/\.md$/, ''));

interface Entry {
  text: string;
  link: string;
}

const readMenu = async (): Promise<Entry[]> => {
  const { sidebar } = (await import(path.join(ROOT, 'docs/.vitepress/pages.mjs'))) as {
    sidebar: { items: Entry[] }[];
  };
  return sidebar.flatMap(({ items }) => items);
};

const titleOf = (page: string): string =>
  /^# (.+)$/m.exec(readDocument(`docs/${page}.md`))?.[1] ?? '';

it.each(pages)('%s is in the menu of the site, once, under its title', async (page) => {
  const entries = (await readMenu()).filter(({ link }) => link === `/${page}`);
  expect(entries.map(({ text }) => text)).toEqual([titleOf(page)]);
});

it.each(pages)('%s is named in docs/index.md', (page) => {
  const named = localLinks(readDocument('docs/index.md')).map((link) => link.split('#')[0]);
  expect(named).toContain(`${page}.md`);
});

/** Lists and tables of pages; a sentence of another page may call one as it likes. */
const LISTS = ['docs/index.md', 'docs/operations.md', 'README.md'];
const README_TABLE = /^\| .*\]\(docs\/.*$/gm;

it.each(LISTS)('%s names pages by their titles', (list) => {
  const text =
    list === 'README.md'
      ? (readDocument(list).match(README_TABLE) ?? []).join('\n')
      : readDocument(list);
  const links = [...text.matchAll(/\[([^\]]+)\]\((?:docs\/)?([\w-]+)\.md\)/g)];
  expect(links.length).toBeGreaterThan(7);
  const misnamed = links.filter(
    ([, name = '', page = '']) => name.toLowerCase() !== titleOf(page).toLowerCase()
  );
  expect(misnamed.map(([link]) => link)).toEqual([]);
});

it('no two pages have the same title', () => {
  expect(new Set(pages.map(titleOf)).size).toBe(pages.length);
});

it('the menu has nothing that is not there', async () => {
  const files = (await readMenu()).map(({ link }) => path.join(ROOT, 'docs', `${link}.md`));
  expect(files.filter((file) => !fs.existsSync(file))).toEqual([]);
});

it('each page begins with its title', () => {
  const untitled = pages.filter((page) => !/^# \S/.test(readDocument(`docs/${page}.md`)));
  expect(untitled).toEqual([]);
});
