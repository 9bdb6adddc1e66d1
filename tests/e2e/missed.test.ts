import type { Browser, Page } from 'playwright-core';
import { type Receiver, startReceiver } from '../support/receiver';
import { waitFor } from '../support/wait';
import { expectText, launchBrowser, moveTo, PLUGIN, signIn } from './support/browser';
import { type Playground, startPlayground } from './support/playground';

const CONTACTS = '/content-manager/collection-types/plugin::switchboard.contact';

let site: Playground;
let browser: Browser;
let page: Page;
let receiver: Receiver;
let webhook: number;
/** Of the contacts that were made before the webhook, those of the playground's seed among them. */
let missed: string[];

const panel = () => page.getByRole('region', { name: 'Missed events' });
const look = () => panel().getByRole('button', { name: 'Find missed events' }).click();

beforeAll(async () => {
  receiver = await startReceiver();
  site = await startPlayground({ journalDays: 7 }, { anew: true });
  for (let nth = 0; nth < 3; nth += 1) {
    await site.admin('POST', CONTACTS, { email: `missed-${nth}@example.test` });
  }
  const journal = (await site.admin('GET', '/switchboard/webhooks/journal?limit=100')).body
    .data as {
    event: string;
    data: { email: string };
  }[];
  missed = journal.filter(({ event }) => event === 'contact.created').map(({ data }) => data.email);
  const body = { name: 'Late', url: receiver.url, events: ['contact.created', 'contact.updated'] };
  webhook = (await site.admin('POST', '/switchboard/webhooks', body)).body.data.id;
  browser = await launchBrowser();
  page = await signIn(browser, site, site.login);
}, 900_000);

afterAll(async () => {
  await browser?.close();
  await receiver?.close();
  await site?.stop();
});

test('what a webhook missed is counted first, then sent, each event once', async () => {
  await page.goto(`${PLUGIN}/webhooks/${webhook}?tab=missed`);
  await panel().getByRole('combobox', { name: 'Event' }).click();
  await page.getByRole('option', { name: 'contact.updated' }).click();
  await look();
  await expectText(panel(), 'No missed events in this period');
  expect(await panel().getByRole('button', { name: /Send/ }).count()).toBe(0);

  await panel().getByRole('button', { name: 'Clear', exact: true }).click();
  await look();
  await expectText(panel(), `${missed.length} missed events in this period`);
  expect(receiver.requests).toHaveLength(0);
  await panel()
    .getByRole('button', { name: `Send ${missed.length} now` })
    .click();
  await page.getByRole('tab', { name: 'Deliveries' }).click();
  await expectText(
    page.getByRole('main'),
    `Done: ${missed.length} of ${missed.length} delivered, 0 failed`
  );
  const emails = receiver.requests.map(({ json }) => json.data.email as string);
  expect(emails.sort()).toEqual([...missed].sort());
  expect(emails).toContain('missed-0@example.test');
  for (const { headers } of receiver.requests) expect(headers['x-service-replayed']).toBe('1');

  await page.getByRole('tab', { name: 'Missed events' }).click();
  await look();
  await expectText(panel(), 'No missed events in this period');
});

test('the journal is read on screen, page by page', async () => {
  await moveTo(page, `${PLUGIN}/webhooks/${webhook}?tab=missed`);
  await panel().getByRole('button', { name: 'Show journal' }).click();
  const journal = panel().getByRole('grid', { name: 'Event journal, oldest first' });
  await expectText(journal, 'contact.created');
  // Its id: how long ago it was published changes while it is looked at.
  const firstId = () => journal.locator('tbody tr').first().locator('td').last().textContent();
  const first = await firstId();
  await panel().getByRole('button', { name: 'Hide journal' }).click();
  await journal.waitFor({ state: 'detached' });
  for (let nth = 0; nth < 12; nth += 1) {
    await site.admin('POST', CONTACTS, { email: `paged-${nth}@example.test` });
  }
  await panel().getByRole('button', { name: 'Show journal' }).click();
  await panel().getByRole('button', { name: 'Later events' }).click();
  await waitFor(async () => (await firstId()) !== first);
  await panel().getByRole('button', { name: 'Back to start' }).click();
  await waitFor(async () => (await firstId()) === first);
});
