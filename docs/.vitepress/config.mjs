// The pages of docs/ as a site: `npm run docs:dev`, `npm run docs:build`. The same files are read in
// the package and on the repository's page, so differences are made here and not in them.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitepress';
import { home } from './home.mjs';
import { sidebar } from './pages.mjs';
import { searchOptions } from './search.mjs';

const REPOSITORY = 'https://publisher.invalid/switchboard';
const docs = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const root = path.dirname(docs);
const read = (file) => fs.readFileSync(path.join(root, file), 'utf8');
const { version, license } = JSON.parse(read('package.json'));
// Also the picture of the browser's tab; one file does for the site, the package and the repository.
const logo = `data:image/svg+xml;base64,${Buffer.from(read('docs/logo.svg')).toString('base64')}`;

/** Git knows when a page changed. A copy of the sources without it builds as well, without the dates. */
const hasHistory = () =>
  spawnSync('git', ['log', '-1', '--format=%H', '--', docs], { cwd: root, stdio: 'pipe' }).stdout
    ?.length > 0;

/** As the repository's page makes anchors, so that one link does for both. */
const slugify = (title) =>
  title
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-');

/**
 * Files that are not pages of the site are on the repository's page: `../examples`, `openapi.json`,
 * folders. Links of CHANGELOG.md, which is part of a page, begin at the root.
 */
const elsewhere = (target, folder) => {
  if (/^([a-z]+:|#|\/)/.test(target)) return target;
  const [file, anchor] = target.split('#');
  const isOfRoot = target.startsWith('docs/');
  const place = path.resolve(isOfRoot ? root : folder, file);
  const isPage = place.startsWith(`${docs}${path.sep}`) && place.endsWith('.md');
  if (isPage) return isOfRoot ? `/${target.slice('docs/'.length)}` : target;
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

const PICTURE = /^screens\/(.+)-light\.png$/;

/** A picture of the panel follows the reader's choice of light or dark. */
const picturesInBothThemes = (md) => {
  const renderImage = md.renderer.rules.image;
  md.renderer.rules.image = (tokens, index, ...rest) => {
    const source = tokens[index].attrGet('src');
    const light = renderImage(tokens, index, ...rest);
    const [, name] = PICTURE.exec(source) ?? [];
    if (name === undefined) return light;
    const dark = light.replace(`${name}-light.png`, `${name}-dark.png`);
    return [light, dark]
      .map((image, nth) => image.replace('<img ', `<img class="only-${nth ? 'dark' : 'light'}" `))
      .join('');
  };
};

export default defineConfig({
  title: 'Switchboard',
  description: 'CRM events out, tills in: a plugin for Strapi 5.',
  lang: 'en',
  outDir: path.join(root, '.tmp/docs-site'),
  cacheDir: path.join(root, '.tmp/vitepress'),
  lastUpdated: hasHistory(),
  head: [
    ['link', { rel: 'icon', type: 'image/svg+xml', href: logo }],
    ['meta', { name: 'theme-color', content: '#272a6b' }],
  ],
  // Unless `vitepress dev` runs, nothing is requested from the network: no fonts, no search service.
  markdown: {
    anchor: { slugify },
    config: (md) => {
      linksElsewhere(md);
      picturesInBothThemes(md);
    },
  },
  transformPageData: (page) =>
    page.relativePath === 'index.md' ? { frontmatter: { ...home(logo), ...page.frontmatter } } : {},
  themeConfig: {
    logo,
    sidebar,
    nav: [
      { text: 'Install', link: '/install' },
      { text: 'Webhooks', link: '/receivers' },
      { text: 'Tills', link: '/tills' },
      { text: 'Operations', link: '/operations' },
      { text: `v${version}`, link: '/changelog' },
    ],
    outline: [2, 3],
    search: { provider: 'local', options: searchOptions },
    socialLinks: [{ icon: 'github', link: REPOSITORY }],
    editLink: { pattern: `${REPOSITORY}/edit/main/docs/:path`, text: 'Edit this page' },
    lastUpdated: { text: 'Last change', formatOptions: { dateStyle: 'medium' } },
    footer: { message: `Switchboard ${version}. ${license} licence.` },
  },
});
