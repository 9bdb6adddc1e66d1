import fs from 'node:fs';
import path from 'node:path';
import type { Browser, Page, Response } from 'playwright-core';
import { ROOT } from '../support/paths';
import menu from '../../admin/src/translations/menu/en.json';
import { readTexts } from '../support/translations';
import { waitFor } from '../support/wait';
import { launchBrowser, PLUGIN, signIn } from './support/browser';
import { type Login, type Playground, startPlayground } from './support/playground';

/** What a browser loads of the plugin: the reader's language alone, and nothing for those without a right to it. */

const LANGUAGES = ['en', 'de', 'fr'] as const;
type Language = (typeof LANGUAGES)[number];

/** Texts that stand in a script as they are. */
const isPlain = (text: string): boolean => /^[\x20-\x7e]+$/.test(text) && !/["'`\\]/.test(text);

/** Long texts of a language that no other has, except for the menu's, which the entry has in all of them. */
const samplesOf = (language: Language): string[] => {
  const others = LANGUAGES.filter((one) => one !== language).flatMap((one) =>
    Object.values(readTexts(one))
  );
  const screens = Object.entries(readTexts(language)).filter(([key]) => !(key in menu));
  return screens
    .map(([, text]) => text)
    .filter((text) => text.length > 30 && isPlain(text) && !others.includes(text));
};

let site: Playground;
let browser: Browser;
beforeAll(async () => {
  site = await startPlayground();
  browser = await launchBrowser();
}, 180_000);
afterAll(async () => {
  await browser?.close();
  await site?.stop();
}, 60_000);

interface Loaded {
  page: Page;
  /** Bodies of scripts by file name. */
  scripts: Map<string, string>;
  /** Paths of the plugin's routes that were asked. */
  asked: string[];
  /** Waits until nothing more comes, and begins anew. */
  settled(): Promise<void>;
}

const openAs = async (login: Login): Promise<Loaded> => {
  const scripts = new Map<string, string>();
  const asked: string[] = [];
  const reading = new Set<Promise<void>>();
  const take = async (response: Response): Promise<void> => {
    const { pathname } = new URL(response.url());
    if (pathname.startsWith('/switchboard/')) asked.push(pathname);
    if (!pathname.endsWith('.js')) return;
    scripts.set(pathname.split('/').at(-1)!, await response.text().catch(() => ''));
  };
  const page = await signIn(browser, site, login);
  page.on('response', (response) => {
    const read = take(response).finally(() => reading.delete(read));
    reading.add(read);
  });
  const settled = async (): Promise<void> => {
    await page.waitForLoadState('networkidle');
    await waitFor(() => reading.size === 0, 30_000, 'the scripts to be read');
  };
  // The login form's scripts were loaded before anybody looked.
  await page.reload();
  await settled();
  return { page, scripts, asked, settled };
};

const readerOf = async (language: Language): Promise<Login> => {
  const login = await site.createUser('Super Admin');
  const { token } = (
    await fetch(`${site.url}/admin/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(login),
    }).then((answer) => answer.json() as Promise<{ data: { token: string } }>)
  ).data;
  const changed = await fetch(`${site.url}/admin/users/me`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ preferedLanguage: language }),
  });
  expect(changed.status).toBe(200);
  return login;
};

const languagesIn = (scripts: ReadonlyMap<string, string>): Language[] => {
  const all = [...scripts.values()].join('\n');
  return LANGUAGES.filter((one) => samplesOf(one).some((text) => all.includes(text)));
};

test.each(LANGUAGES)('a reader of %s loads the texts of that language alone', async (language) => {
  const { page, scripts, asked, settled } = await openAs(await readerOf(language));
  await page.goto(`${PLUGIN}/import`);
  const subtitle = readTexts(language)['import.subtitle']!;
  await page.getByText(subtitle).waitFor();
  await settled();
  expect(languagesIn(scripts)).toEqual([language]);
  expect(asked).toContain('/switchboard/modules');
  // The menu is in that language, too.
  const menu = page.getByRole('link', { name: readTexts(language)['nav.plugin']! });
  expect(await menu.count()).toBeGreaterThan(0);
  await page.context().close();
});

test('who may sees the widgets', async () => {
  const { page } = await openAs(await readerOf('en'));
  await page.getByRole('grid', { name: 'Tills' }).waitFor();
  await page.getByRole('heading', { name: 'Needs attention' }).waitFor();
  await page.context().close();
});

test('who changes the language reads on in the new one', async () => {
  const { page } = await openAs(await readerOf('en'));
  await page.goto('/admin/me');
  await page.getByRole('combobox', { name: /language/i }).click();
  await page.getByRole('option', { name: 'Deutsch' }).click();
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('button', { name: 'Speichern' }).waitFor();
  await page.getByRole('link', { name: readTexts('de')['nav.plugin']! }).click();
  await page.getByText(readTexts('de')['overview.subtitle']!).waitFor();
  await page.context().close();
});

test('who has no right to the plugin loads its entry alone, and asks it nothing', async () => {
  const { page, scripts, asked, settled } = await openAs(await site.createUser('Editor'));
  await page.getByRole('heading', { level: 1 }).first().waitFor();
  await page.goto('/admin/content-manager');
  await page.getByRole('heading', { level: 1 }).first().waitFor();
  await settled();
  expect(asked).toEqual([]);
  expect(languagesIn(scripts)).toEqual([]);
  // The entry is a part of the script that the panel begins with; all else has a script of its own.
  const files = fs.readdirSync(path.join(ROOT, 'dist/admin'));
  const parts = files.map((name) => name.split('.')[0]!).filter((name) => name !== 'index');
  expect(parts.length).toBeGreaterThan(50);
  const named = [...scripts.keys()].filter((name) =>
    parts.some((part) => name.startsWith(`${part}-`))
  );
  expect(named).toEqual([]);
  await page.context().close();
});
