import fs from 'node:fs';
import path from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { send } from '../support/http';
import { type Playground, startPlayground } from '../support/playground';
import { waitFor } from '../support/wait';
import { atRest, launchBrowser, moveTo, PLUGIN } from './support/browser';

/** The tour of the playground: what `npm start` shows somebody who never saw the project. */

let playground: Playground;
let browser: Browser;
let page: Page;

const logIn = async (): Promise<Page> => {
  const { signIn } = await import('../../scripts/lib/browser.mjs');
  const options = { locale: 'en-GB', viewport: { width: 1280, height: 900 } };
  const opened = await signIn(browser, playground.siteUrl, playground.login, options);
  opened.context().setDefaultTimeout(60_000);
  return opened;
};

/** Pictures for whoever looks at the tour, where they name a folder. */
const picture = async (name: string) => {
  const folder = process.env.TOUR_PICTURES;
  if (folder) await page.screenshot({ path: path.join(folder, `${name}.png`), fullPage: true });
};

const tour = () => page.getByRole('region', { name: /playground|Playground|terrain de jeu/ });
const steps = () => tour().getByRole('listitem');
const step = (text: string) => steps().filter({ hasText: text });
const arrivals = async () =>
  (
    await send<{ event: string; body: string }[]>({
      method: 'GET',
      url: `${playground.receiverPage}arrivals.json`,
    })
  ).body;

beforeAll(async () => {
  playground = await startPlayground({ PLAYGROUND_SHOP: 'week' });
  browser = await launchBrowser();
  page = await logIn();
}, 600_000);
afterAll(async () => {
  await browser?.close();
  await playground?.stop();
}, 60_000);

describe('the tour of the playground', () => {
  it('is on the overview page, a step a line, with the pages of the receiver and the till', async () => {
    await page.goto(`${PLUGIN}/overview`);
    await tour().waitFor();
    const count = await steps().count();
    expect(count).toBeGreaterThanOrEqual(6);
    expect(count).toBeLessThanOrEqual(10);
    const hrefs = await tour()
      .getByRole('link')
      .evaluateAll((all) => all.map((one) => (one as HTMLAnchorElement).href));
    expect(hrefs).toContain(playground.receiverPage);
    const file = path.join(playground.dataFolder, 'public/playground-tour.json');
    const { till } = JSON.parse(fs.readFileSync(file, 'utf8')) as { till: string };
    expect(hrefs).toContain(till);
    expect(await (await fetch(till)).text()).toContain(`${playground.siteUrl}${PLUGIN}/overview`);
    await picture('tour-1280');
  });

  it('leads to pages that have what its steps speak of', async () => {
    const expected: [link: string, shown: string | RegExp][] = [
      ['Unmapped products', 'SCARF-GREY'],
      ['Refund on hold', 'week-front-held'],
      ['Closing', /week-market-7-closing/],
      ['Deals', 'Display shelves'],
      ['Failed deliveries', /Resend all 3 matching/],
    ];
    for (const [link, shown] of expected) {
      await moveTo(page, `${PLUGIN}/overview`);
      await tour().getByRole('link', { name: link, exact: true }).click();
      await page.getByText(shown).first().waitFor();
    }
  });

  it('resends the failed deliveries, as its first step says', async () => {
    await moveTo(page, `${PLUGIN}/overview`);
    await step('Resend the deliveries').getByRole('link', { name: 'Failed deliveries' }).click();
    const before = (await arrivals()).length;
    await page.getByRole('button', { name: 'Resend all 3 matching' }).click();
    await page.getByRole('button', { name: 'Resend 3' }).click();
    const won = await waitFor(async () =>
      (await arrivals()).slice(before).find(({ event }) => event === 'deal.won')
    );
    expect(won.body).toContain('Tea for the terrace');
  });

  it('fits a narrow screen, light and dark', async () => {
    await moveTo(page, `${PLUGIN}/overview`);
    await tour().waitFor();
    await page.setViewportSize({ width: 390, height: 844 });
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await atRest(page);
      const box = await tour().boundingBox();
      expect(box!.x).toBeGreaterThanOrEqual(0);
      expect(box!.x + box!.width).toBeLessThanOrEqual(390);
      await picture(`tour-390-${colorScheme}`);
    }
    await page.setViewportSize({ width: 1280, height: 900 });
    await picture('tour-1280-dark');
    await page.emulateMedia({ colorScheme: 'light' });
  });

  it('speaks German and French', async () => {
    const languages = [
      ['de', 'Ein Rundgang durch den Playground'],
      ['fr', 'Visite guidée du terrain de jeu'],
    ] as const;
    for (const [language, title] of languages) {
      await page.evaluate((one) => localStorage.setItem('strapi-admin-language', one), language);
      await page.goto(`${PLUGIN}/overview`);
      await page.getByRole('heading', { name: title }).waitFor();
      await picture(`tour-${language}`);
    }
    await page.evaluate(() => localStorage.setItem('strapi-admin-language', 'en'));
  });

  it('stays hidden for who hid it, and can be shown again', async () => {
    await page.goto(`${PLUGIN}/overview`);
    await page.getByRole('button', { name: 'Hide tour' }).click();
    await tour().waitFor({ state: 'detached' });
    await page.reload();
    const show = page.getByRole('button', { name: 'Show tour' });
    await show.waitFor();
    expect(await tour().count()).toBe(0);
    await show.click();
    await tour().waitFor();
  });
});
