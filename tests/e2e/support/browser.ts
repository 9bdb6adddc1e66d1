import type { Browser, Locator, Page } from 'playwright-core';
import { waitFor } from '../../support/wait';
import type { Login, Playground } from './playground';

/** The scripts' own: an ES module, which CommonJS can but import dynamically. */
const shared = () => import('../../../scripts/lib/browser.mjs');

export const launchBrowser = async (): Promise<Browser> => (await shared()).launchBrowser();

/** How long a page may take on a machine that is busy with something else. */
const PATIENCE_MS = 60_000;

/** A page of a session of its own, logged in through the login form. */
export const signIn = async (browser: Browser, site: Playground, login: Login): Promise<Page> => {
  const { signIn: logIn } = await shared();
  const page = await logIn(browser, site.url, login, { locale: 'en-GB' });
  page.context().setDefaultTimeout(PATIENCE_MS);
  return page;
};

/**
 * Waits until the locator's text contains this; the page refreshes by itself. The text as written:
 * the host's badges show theirs in capitals.
 */
export const expectText = (locator: Locator, text: string | RegExp, timeout = PATIENCE_MS) =>
  waitFor(
    async () => {
      const found = (await locator.allTextContents()).join('\n');
      const isThere = typeof text === 'string' ? found.includes(text) : text.test(found);
      if (!isThere) throw new Error(found);
      return true;
    },
    timeout,
    `the text ${String(text)}`
  );

export const PLUGIN = '/admin/plugins/switchboard';
