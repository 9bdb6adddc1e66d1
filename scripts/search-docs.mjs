// node scripts/search-docs.mjs [--json] <question> …
//
// Searches the documentation as its site does: the same pages, the same sections, the same options.
// Prints the best five sections of each question.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { createMarkdownRenderer, resolveConfig } from 'vitepress';
import { ROOT } from './lib/paths.mjs';

// VitePress brings the search engine that runs in the browser.
const require = createRequire(createRequire(import.meta.url).resolve('vitepress'));
const MiniSearch = require('minisearch');
const BEST = 5;

const { srcDir, pages, markdown, site, logger } = await resolveConfig(path.join(ROOT, 'docs'));
const { options, searchOptions, _splitIntoSections } = site.themeConfig.search.options.miniSearch;
const fields = { fields: ['title', 'titles', 'text'], storeFields: ['title', 'titles'] };
const index = new MiniSearch({ ...fields, searchOptions, ...options });
const md = await createMarkdownRenderer(srcDir, markdown, site.base, logger);

for (const page of pages) {
  const file = path.join(srcDir, page);
  const html = md.render(fs.readFileSync(file, 'utf8'), { path: file, relativePath: page });
  for (const { anchor, titles, text } of _splitIntoSections(file, html)) {
    const id = `${page.replace(/\.md$/, '')}#${anchor}`;
    index.add({ id, text, title: titles.at(-1), titles: titles.slice(0, -1) });
  }
}

const questions = process.argv.slice(2).filter((one) => one !== '--json');
const answers = questions.map((question) => ({
  question,
  found: index.search(question).slice(0, BEST),
}));
if (process.argv.includes('--json')) {
  console.log(JSON.stringify(answers.map(({ found }) => found.map(({ id }) => id))));
} else {
  for (const { question, found } of answers) {
    console.log(question);
    for (const { id, score } of found) console.log(`  ${score.toFixed(1).padStart(7)}  ${id}`);
  }
}
