import fs from 'node:fs';
import path from 'node:path';
import { localLinks, readDocument, ROOT } from './support/markdown';

/** The site of the documentation: a page that no menu names is not found. */

const pages = fs
  .readdirSync(path.join(ROOT, 'docs'))
  .filter((name) => name.endsWith('.md') && name !== 'index.md')
  .map((name) => name.replace(/\.md$/, ''));

const menu = [
  ...readDocument('docs/.vitepress/pages.mjs').matchAll(/page\('[^']+', '([^']+)'\)/g),
].map(([, file = '']) => file);

it.each(pages)('%s is in the menu of the site, once', (page) => {
  expect(menu.filter((file) => file === page)).toEqual([page]);
});

it.each(pages)('%s is named in docs/index.md', (page) => {
  const named = localLinks(readDocument('docs/index.md')).map((link) => link.split('#')[0]);
  expect(named).toContain(`${page}.md`);
});

it('the menu has nothing that is not there', () => {
  expect(menu.filter((file) => !fs.existsSync(path.join(ROOT, 'docs', `${file}.md`)))).toEqual([]);
});

it('each page begins with its title', () => {
  const untitled = pages.filter((page) => !/^# \S/.test(readDocument(`docs/${page}.md`)));
  expect(untitled).toEqual([]);
});
