// The pages of docs/ as a site: `npm run docs:dev`, `npm run docs:build`. The same files are read in
// the package and on the repository's page, so what differs is done here and not in them.
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitepress';
import { sidebar } from './pages.mjs';

const REPOSITORY = 'https://publisher.invalid/switchboard';
const docs = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const root = path.dirname(docs);

/** As the repository's page makes anchors, so that one link does for both. */
const slugify = (title) =>
  title
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-');

/** What is no page of the site is on the repository's page: `../examples`, `openapi.json`, folders. */
const elsewhere = (target, folder) => {
  if (/^([a-z]+:|#|\/)/.test(target)) return target;
  const [file, anchor] = target.split('#');
  const place = path.resolve(folder, file);
  const isPage = place.startsWith(`${docs}${path.sep}`) && place.endsWith('.md');
  if (isPage) return target;
  const kind = path.extname(place) === '' ? 'tree' : 'blob';
  const address = `${REPOSITORY}/${kind}/main/${path.relative(root, place)}`;
  return anchor === undefined ? address : `${address}#${anchor}`;
};

const linksElsewhere = (md) => {
  md.core.ruler.push('links-elsewhere', ({ tokens, env }) => {
    const folder = path.dirname(env.path ?? path.join(docs, 'index.md'));
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const href = token.type === 'link_open' && token.attrGet('href');
      if (href) token.attrSet('href', elsewhere(href, folder));
    }
  });
};

export default defineConfig({
  title: 'Switchboard',
  description: 'CRM events out, tills in: a plugin for Strapi 5.',
  lang: 'en',
  outDir: path.join(root, '.tmp/docs-site'),
  cacheDir: path.join(root, '.tmp/vitepress'),
  // Beside `vitepress dev`, nothing is asked of the network: no fonts, no search service.
  markdown: { anchor: { slugify }, config: linksElsewhere },
  themeConfig: {
    sidebar,
    outline: [2, 3],
    search: { provider: 'local' },
    socialLinks: [{ icon: 'github', link: REPOSITORY }],
  },
});
