import type { Browser, Locator, Page, Request } from 'playwright-core';
import { sleep, waitFor } from '../../support/wait';
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
 * Logs another person in where one is logged in. A third of a session of its own, which loads all of the
 * panel's scripts again.
 */
export const switchTo = async (page: Page, login: Login): Promise<void> => {
  await page.context().clearCookies();
  await page.evaluate(() => {
    localStorage.clear();
    sessionStorage.clear();
  });
  await (await shared()).logIn(page, login);
};

/** Looking more often takes from the page the time that it needs to get there. */
const LOOK_EVERY_MS = 80;

/**
 * Waits until the locator's text contains this; the page refreshes by itself. The text as written:
 * the host's badges show theirs in capitals.
 */
export const expectText = (locator: Locator, text: string | RegExp, timeout = PATIENCE_MS) =>
  waitFor(
    async () => {
      const found = (await locator.allTextContents()).join('\n');
      const isThere = typeof text === 'string' ? found.includes(text) : text.test(found);
      if (isThere) return true;
      await sleep(LOOK_EVERY_MS);
      throw new Error(found);
    },
    timeout,
    `the text ${String(text)}`
  );

/** Waits until it has the focus. */
export const expectFocus = (locator: Locator) =>
  waitFor(
    () => locator.evaluate((one) => one === document.activeElement),
    PATIENCE_MS,
    `the focus on ${String(locator)}`
  );

/**
 * Waits until nothing on the page is in transition or animated any more, so that its colours are those
 * that stay; what goes round without end, such as a spinner, is not waited for.
 */
export const atRest = (page: Page): Promise<void> =>
  page.evaluate(async () => {
    for (;;) {
      // What was just changed begins its transitions with the next frame.
      for (let frame = 0; frame < 2; frame += 1) await new Promise(requestAnimationFrame);
      const running = document
        .getAnimations()
        .filter(
          ({ effect, playState }) =>
            playState === 'running' && effect?.getComputedTiming().endTime !== Infinity
        );
      if (running.length === 0) return;
      await Promise.allSettled(running.map(({ finished }) => finished));
    }
  });

/** Opens the menu of a page's rare actions, and chooses one; a dialog asks what follows. */
export const chooseAction = async (page: Page, name: string): Promise<void> => {
  await page.getByRole('button', { name: 'More actions' }).click();
  await page.getByRole('menuitem', { name, exact: true }).click();
};

export const PLUGIN = '/admin/plugins/switchboard';

/** As `networkidle` means it. */
const QUIET_MS = 500;

/** Begins to watch; the answer waits until the page has asked for nothing for a while. */
const watchRequests = (page: Page): (() => Promise<void>) => {
  const underWay = new Set<Request>();
  let lastAt = Date.now();
  const begun = (request: Request) => void underWay.add(request);
  const ended = (request: Request) => {
    underWay.delete(request);
    lastAt = Date.now();
  };
  page.on('request', begun).on('requestfinished', ended).on('requestfailed', ended);
  return async () => {
    await waitFor(() => underWay.size === 0 && Date.now() - lastAt >= QUIET_MS, PATIENCE_MS);
    page.off('request', begun).off('requestfinished', ended).off('requestfailed', ended);
  };
};

/** What the page before told would stay for seconds, over whichever page comes next. */
const closeNotices = async (page: Page): Promise<void> => {
  const notices = page.locator('[data-sonner-toast]');
  if ((await notices.count()) === 0) return;
  const close = (all: Element[]) => all.forEach((one) => (one as HTMLElement).click());
  await notices.getByRole('button').evaluateAll(close);
  await waitFor(async () => (await notices.count()) === 0, PATIENCE_MS, 'the notices to go');
};

/**
 * Goes to another address of the panel that is open, as its links do, and waits until the page there asks
 * for nothing more. A fifth of what it takes to load the panel again; but what was changed behind its back
 * it may show as it was for a minute: `page.goto` where that matters.
 */
export const moveTo = async (page: Page, address: string): Promise<void> => {
  const push = (url: string) =>
    page.evaluate((target) => {
      const state = { idx: (history.state?.idx ?? 0) + 1, key: crypto.randomUUID(), usr: null };
      history.pushState(state, '', target);
      dispatchEvent(new PopStateEvent('popstate', { state }));
    }, url);
  // By way of nowhere, so that nothing of the page before is taken for one of the next.
  const nowhere = page.getByRole('heading', { level: 1, name: 'Page not found' });
  await push('/admin/nowhere');
  await nowhere.waitFor();
  await closeNotices(page);
  const settled = watchRequests(page);
  await push(address);
  await nowhere.waitFor({ state: 'detached' });
  await settled();
};
