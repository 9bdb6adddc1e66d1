import type { Browser, Locator, Page } from 'playwright-core';
import { waitFor } from '../../support/wait';
import type { Login, Playground } from './playground';

/** The scripts' own: an ES module, which CommonJS can but import dynamically. */
const shared = () => import('../../../scripts/lib/browser.mjs');

export const launchBrowser = async (): Promise<Browser> => (await shared()).launchBrowser();

/** A page of a session of its own, logged in through the login form. */
export const signIn = async (browser: Browser, site: Playground, login: Login): Promise<Page> =>
  (await shared()).signIn(browser, site.url, login, { locale: 'en-GB' });

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
