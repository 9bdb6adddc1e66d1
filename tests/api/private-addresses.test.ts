import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, type SiteOptions, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import { createWebhook, send, testWebhook } from './delivery-support';

const WEBHOOKS = '/api/fw-crm/v1/webhooks';

const LOCAL_NAMES = [
  'http://localhost/',
  'http://LOCALHOST:8080/',
  'http://localhost./',
  'http://%6Cocalhost/',
  'http://ｌocalhost/',
  'http://a.localhost/',
  'http://a.b.localhost./',
  'http://ip6-localhost/',
  'http://ip6-localhost./',
  'http://ip6-loopback/',
  'http://localhost.localdomain/',
  'http://localhost6/',
];

const save = (site: Site, url: string) =>
  site.request('POST', WEBHOOKS, { body: { name: 'x', url, events: ['*'] } });

const bootLines = (site: Site): string[] =>
  site
    .log()
    .split('\n')
    .filter((line) => line.includes('private addresses are'));

const withSite = async (settings: SiteOptions, work: (site: Site) => Promise<void>) => {
  const site = await startSite({
    ...settings,
    options: { ...settings.options, webhooks: { allowPrivateNetworks: false, pollSeconds: 1 } },
  });
  try {
    await work(site);
  } finally {
    await site.stop();
  }
};

describe('a site that was started plainly, without NODE_ENV', () => {
  it('refuses private addresses and says so in one line; the refusal names the option', async () => {
    await withSite({ env: { NODE_ENV: undefined } }, async (site) => {
      // What the host makes of it.
      expect(await site.control('config', { key: 'environment' })).toBe('development');
      await waitFor(() => bootLines(site).length > 0);
      expect(bootLines(site)).toEqual([
        expect.stringMatching(
          /private addresses are refused \(NODE_ENV is not set.*webhooks\.allowPrivateNetworks/
        ),
      ]);
      for (const url of ['http://127.0.0.1:1/', 'http://169.254.169.254/', ...LOCAL_NAMES]) {
        const { status, body } = await save(site, url);
        expect({ url, status, path: body.error?.details.errors[0].path }).toEqual({
          url,
          status: 400,
          path: ['url'],
        });
        expect(body.error.message).toContain('webhooks.allowPrivateNetworks');
      }
    });
  }, 120_000);
});

describe('private addresses are open', () => {
  let receiver: Receiver;
  beforeAll(async () => {
    receiver = await startReceiver();
  });
  afterAll(() => receiver?.close());

  it.each<[string, SiteOptions, RegExp]>([
    ['where NODE_ENV was set to development', { nodeEnv: 'development' }, /NODE_ENV is set to dev/],
    ['where NODE_ENV was set to local', { nodeEnv: 'local' }, /NODE_ENV is set to local/],
    [
      'where a handler of the site says so',
      {
        nodeEnv: 'production',
        setupFiles: [require.resolve('../support/handlers/allow-local.js')],
      },
      /are open \(NODE_ENV is set to production.*service_crm_webhook_allow_local/,
    ],
    [
      'under strapi develop',
      { env: { NODE_ENV: undefined, SITE_AUTO_RELOAD: 'true' } },
      /strapi develop/,
    ],
  ])(
    '%s, and the boot log says why',
    async (_name, settings, why) => {
      await withSite(settings, async (site) => {
        await waitFor(() => bootLines(site).length > 0);
        expect(bootLines(site)).toHaveLength(1);
        expect(bootLines(site)[0]).toMatch(/private addresses are open \(/);
        expect(bootLines(site)[0]).toMatch(why);
        receiver.clear();
        const { id } = await createWebhook(site, `http://localhost:${receiver.port}/`);
        expect((await testWebhook(site, id)).body).toMatchObject({ ok: true });
        await send(site, 'order.placed', {});
        await receiver.waitFor(2);
      });
    },
    120_000
  );
});
