import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { describeEach, anyDatabase } from '../support/databases';
import { ROOT } from '../support/paths';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { BootError } from '../support/site-process';
import { waitFor } from '../support/wait';
import { arrivals, countRows, createWebhook, insertDeliveries } from './delivery-support';

const WITHOUT = pathToFileURL(path.join(ROOT, 'tests/support/without-packages.mjs')).href;
const COUNT = 300;

describe('a site without the package undici', () => {
  it('does not boot with it as the client, and says what to install', async () => {
    const boot = startSite({
      accounts: false,
      options: { webhooks: { client: 'undici' } },
      env: { NODE_OPTIONS: `--import ${WITHOUT}`, WITHOUT_PACKAGES: 'undici' },
    });
    const error: unknown = await boot.then(
      (site) => site.stop(),
      (failure: unknown) => failure
    );
    expect(error).toBeInstanceOf(BootError);
    expect((error as BootError).log).toContain('Run: npm install undici');
  }, 90_000);

  it('boots with got', async () => {
    const site = await startSite({
      env: { NODE_OPTIONS: `--import ${WITHOUT}`, WITHOUT_PACKAGES: 'undici' },
    });
    await site.stop();
  }, 90_000);
});

describeEach(anyDatabase(), 'a site that posts with undici', (database) => {
  let site: Site;
  let receiver: Receiver;

  beforeAll(async () => {
    receiver = await startReceiver();
    site = await startSite({
      database,
      options: {
        webhooks: { client: 'undici', retryScheduleSeconds: [1], disableAfterFailures: 100_000 },
      },
    });
  }, 120_000);
  afterAll(async () => {
    await receiver?.close();
    await site?.stop();
  }, 60_000);

  it('sends each delivery once, and again what failed, when it is due', async () => {
    receiver.respond((_request, index) => (index % 10 === 0 ? { status: 503 } : { status: 200 }));
    const { id } = await createWebhook(site, receiver.url);
    await insertDeliveries(site, id, COUNT);
    await waitFor(
      async () => (await countRows(site, 'webhook_id = ? AND status = ?', [id, 'pending'])) === 0,
      60_000,
      'everything to be sent or to have failed twice'
    );
    await receiver.settle(300);
    expect(arrivals(receiver).size).toBe(COUNT);
    const sent = await countRows(site, 'webhook_id = ? AND status = ?', [id, 'sent']);
    const retried = [...arrivals(receiver).values()].filter((posts) => posts.length === 2).length;
    expect(retried).toBeGreaterThanOrEqual(COUNT / 10 - 1);
    expect(receiver.requests).toHaveLength(COUNT + retried);
    expect(sent).toBeGreaterThan(COUNT * 0.9);
  }, 90_000);
});
