import fs from 'node:fs';
import { type Browser, chromium, type Locator, type Page } from 'playwright-core';
import { waitFor } from '../../support/wait';
import type { Login, Playground } from './playground';

const CANDIDATES = [process.env.CHROMIUM_PATH, '/usr/bin/chromium', '/usr/bin/chromium-browser'];

/** Nothing leaves this computer: not the browser's own services, not the panel's pictures. */
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
];

export const launchBrowser = (): Promise<Browser> => {
  const executablePath = CANDIDATES.find((file) => file && fs.existsSync(file));
  if (!executablePath) throw new Error('No Chromium: install it, or set CHROMIUM_PATH.');
  return chromium.launch({ executablePath, args: FLAGS });
};

/** A page of a session of its own, logged in through the login form. */
export const signIn = async (browser: Browser, site: Playground, login: Login): Promise<Page> => {
  const context = await browser.newContext({
    viewport: { width: 1440, height: 900 },
    locale: 'en-GB',
    baseURL: site.url,
  });
  context.setDefaultTimeout(20_000);
  const page = await context.newPage();
  await page.goto('/admin/auth/login');
  await page.fill('input[name=email]', login.email);
  await page.fill('input[name=password]', login.password);
  await page.click('button[type=submit]');
  await page.waitForURL((url) => !url.pathname.includes('/auth/'));
  return page;
};

/**
 * Waits until the locator's text contains this; the page refreshes by itself. The text as written:
 * the host's badges show theirs in capitals.
 */
export const expectText = (locator: Locator, text: string | RegExp, timeout = 20_000) =>
  waitFor(
    async () => {
      const found = (await locator.allTextContents()).join('\n');
      return typeof text === 'string' ? found.includes(text) : text.test(found);
    },
    timeout,
    `the text ${String(text)}`
  );

export const PLUGIN = '/admin/plugins/switchboard';
