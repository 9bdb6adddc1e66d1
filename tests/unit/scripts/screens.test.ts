import fs from 'node:fs';
import path from 'node:path';
import { readDocument, ROOT } from '../docs/support/markdown';

/** docs/screens has a picture of each screen: scripts/screenshots.mjs takes what this list names. */

interface Screen {
  name: string;
  route: string;
}

const readScreens = async (): Promise<Screen[]> => {
  const { SCREENS } = (await import(path.join(ROOT, 'scripts/lib/screens.mjs'))) as {
    SCREENS: Screen[];
  };
  return SCREENS;
};

const found = (file: string, pattern: RegExp): string[] =>
  [...readDocument(file).matchAll(pattern)].map(([, value = '']) => value);

it('each route of the panel has a picture', async () => {
  const routes = [
    ...found('admin/src/pages/app.tsx', /\bpath: '([^']+)'/g),
    ...found('admin/src/index.ts', /\bto: `\$\{PLUGIN_ID\}\/([^`]+)`/g).map(
      (page) => `/admin/settings/switchboard/${page}`
    ),
  ];
  expect(routes.length).toBeGreaterThan(20);
  const shown = new Set((await readScreens()).map(({ route }) => route));
  expect(routes.filter((route) => !shown.has(route))).toEqual([]);
  // A route that is gone has no picture: the host's home page has the widgets.
  expect([...shown].filter((route) => !routes.includes(route))).toEqual(['/admin']);
});

it('each tab of a webhook has a picture', async () => {
  const tabs = found('admin/src/translations/en.json', /"webhook\.tab\.(\w+)"/g);
  const names = (await readScreens()).map(({ name }) => name);
  expect(tabs.length).toBeGreaterThan(3);
  expect(tabs.filter((tab) => !names.includes(`webhook-${tab}`))).toEqual([]);
});

it('no two pictures have the same name', async () => {
  const names = (await readScreens()).map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
});

it('documents show pictures that are taken', async () => {
  const names = new Set((await readScreens()).map(({ name }) => name));
  const documents = [
    'README.md',
    'docs/.vitepress/theme/index.mjs',
    ...fs
      .readdirSync(path.join(ROOT, 'docs'))
      .filter((name) => name.endsWith('.md'))
      .map((name) => `docs/${name}`),
  ];
  const quoted = documents.flatMap((document) =>
    found(document, /screens\/([\w-]+)-(?:light|dark)\.png/g)
  );
  expect(quoted.length).toBeGreaterThan(3);
  expect(quoted.filter((name) => !names.has(name))).toEqual([]);
});
