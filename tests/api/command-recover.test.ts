import type {
  CursorPage,
  Delivery,
  Recovery,
  RecoveryPreview,
} from '../../shared/contracts/webhooks';
import { runCommand } from '../support/command';
import { describeEach, anyDatabase } from '../support/databases';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { countRows, createWebhook } from './delivery-support';
import { insertFailed, insertFailing, isDone, waitForRecovery } from './recoveries-support';

const json = <T>(text: string): T => JSON.parse(text) as T;

describeEach(anyDatabase(), 'the commands webhooks, deliveries and recover', (database) => {
  let site: Site;
  let receiver: Receiver;
  let webhook: number;
  let other: number;

  beforeAll(async () => {
    receiver = await startReceiver();
    // The site itself does not send: what is sent here, a command has sent.
    site = await startSite({
      database,
      options: { webhooks: { dispatch: false, pollSeconds: 1, disableAfterFailures: 100_000 } },
    });
    webhook = (await createWebhook(site, receiver.url, { name: 'Newsletter' })).id;
    other = (await createWebhook(site, receiver.url, { active: false })).id;
    await insertFailed(site, webhook, 120);
    await insertFailing(site, other, 2);
  }, 300_000);
  afterAll(async () => {
    await receiver?.close();
    await site?.stop();
  }, 60_000);

  const run = (...words: string[]) => runCommand(words, { env: site.env() });

  it('list webhooks and how they do', async () => {
    const listed = await run('webhooks', '--json');
    expect(listed.code).toBe(0);
    expect(json<{ data: unknown[] }>(listed.stdout).data).toEqual([
      expect.objectContaining({ id: webhook, name: 'Newsletter' }),
      expect.objectContaining({ id: other, health: expect.objectContaining({ failing: 2 }) }),
    ]);
    const text = await run('webhooks');
    expect(text.stdout).toMatch(new RegExp(`^${webhook} +new +0 waiting +0 failing +Newsletter`));
  }, 300_000);

  it('find deliveries by the filters of the log', async () => {
    const found = await run(
      'deliveries',
      '--webhook',
      String(other),
      '--state',
      'failing',
      '--json'
    );
    expect(found.code).toBe(0);
    const { data, meta } = json<CursorPage<Delivery>>(found.stdout);
    expect(data.map(({ state, webhook_id: id }) => [state, id])).toEqual(
      Array(2).fill(['failing', other])
    );
    expect(meta).toEqual({ next_cursor: null, total: 2, total_capped: false });
    const text = await run('deliveries', '--limit', '1', '--cause', 'http_500');
    expect(text.stdout).toMatch(/ failed +webhook \d+ +load\.test +- +http_500 +[0-9a-f-]{36}\n/);
    expect(text.stdout).toMatch(/120 in all\. More: --cursor \S+\n$/);
  }, 300_000);

  it('preview unless they are told to send, then send and wait for the end', async () => {
    const words = ['recover', '--webhook', String(webhook), '--state', 'failed'];
    const previewed = await run(...words, '--json');
    expect(previewed.code).toBe(0);
    expect(json<RecoveryPreview>(previewed.stdout)).toMatchObject({
      matching: 120,
      by_webhook: [{ webhook_id: webhook, count: 120 }],
    });
    const text = (await run(...words)).stdout;
    expect(text).toMatch(/^120 to send again, the oldest made at /);
    // Ten of them, so that whoever sends them sees what they are.
    expect(text.match(/^ {2}\S+ +load\.test +- +http_500 +[0-9a-f-]{36}$/gm)).toHaveLength(10);
    expect(text).toMatch(/\nNothing was sent\. Run again with --yes to send them\.\n$/);
    expect(receiver.requests).toEqual([]);
    const sent = await run(...words, '--yes', '--json');
    expect([sent.code, json<Recovery>(sent.stdout)]).toEqual([
      0,
      expect.objectContaining({ state: 'done', matching: 120, queued: 120, sent: 120, failed: 0 }),
    ]);
    expect(receiver.requests).toHaveLength(120);
    expect(await countRows(site, "webhook_id = ? AND status = 'sent'", [webhook])).toBe(120);
  }, 400_000);

  it('end with 1 where something failed again, and do not wait where that is asked', async () => {
    receiver.respond({ status: 500 });
    await insertFailed(site, webhook, 1);
    const failed = await run('recover', '--state', 'failed', '--yes');
    expect(failed.code).toBe(1);
    expect(failed.stdout).toMatch(
      new RegExp(
        '^recovery \\d+ done: 1 of 1 queued, 0 sent, 1 failed\nWhy they failed:\n' +
          ` +webhook ${webhook} +http_500 +1\n$`
      )
    );
    receiver.clear();
    receiver.respond({ status: 200 });
    await insertFailed(site, webhook, 1);
    const detached = await run('recover', '--state', 'failed', '--yes', '--detach', '--json');
    expect(detached.code).toBe(0);
    const { id, state } = json<Recovery>(detached.stdout);
    expect([state, receiver.requests.length]).toEqual(['running', 0]);
    const waited = await run('recover', '--cause', 'dns', '--yes', '--json');
    expect(waited.code).toBe(0);
    await site.restart({
      options: { webhooks: { pollSeconds: 1, disableAfterFailures: 100_000 } },
    });
    expect(await waitForRecovery(site, id, isDone)).toMatchObject({ matching: 1, sent: 1 });
  }, 400_000);

  it('send nothing while the module is off, and say so', async () => {
    const modules = (webhooks: boolean) =>
      site.evaluate(
        ({ strapi }, on) => strapi.service('plugin::switchboard.modules').set({ webhooks: on }),
        webhooks
      );
    await modules(false);
    const refused = await run('recover', '--state', 'failed', '--yes');
    await modules(true);
    expect([refused.code, refused.stderr]).toEqual([
      2,
      expect.stringMatching(/the module Webhooks is switched off/),
    ]);
  }, 200_000);

  it.each([
    [['deliveries', '--state', 'lost'], /--state must be one of .*"lost"$/],
    [['deliveries', '--limit', '101'], /--limit must be a whole number from 1 to 100, not "101"$/],
    [['deliveries', '--webhook', 'x'], /--webhook must be a whole number/],
    [['deliveries', '--from', 'yesterday'], /--from must be a time/],
    [['deliveries', '--subject-type', 'car'], /--subject-type /],
    [['recover', '--id', '7', '--id', 'x'], /--id must be the id of a delivery, not "x"$/],
    [['recover', '--detach'], /--detach goes with --yes$/],
    [['recover', '--webhook', '99'], /there is no webhook 99; see switchboard webhooks$/],
    [['recover', '--unknown'], /--unknown/],
    [['webhooks', 'extra'], /extra/],
  ])(
    'refuse %j with one line',
    async (words, message) => {
      const refused = await run(...words);
      expect([refused.code, refused.stdout]).toEqual([2, '']);
      const lines = refused.stderr
        .trim()
        .split('\n')
        .filter((line) => line.startsWith('switchboard '));
      expect(lines).toEqual([expect.stringMatching(message)]);
      expect(refused.stderr).not.toMatch(/\n {4}at /);
    },
    120_000
  );

  it.each(['webhooks', 'deliveries', 'recover'])('say what %s does', async (name) => {
    const help = await run(name, '--help');
    expect([help.code, help.stderr]).toEqual([0, '']);
    expect(help.stdout).toMatch(new RegExp(`: switchboard ${name} .*--json`));
  });
});

describeEach(anyDatabase(), 'commands beside a site with another environment', (database) => {
  let site: Site;
  let receiver: Receiver;
  let webhook: number;
  const options = { webhooks: { dispatch: false, allowPrivateNetworks: false } };

  beforeAll(async () => {
    receiver = await startReceiver();
    site = await startSite({ database, options, nodeEnv: 'development' });
    webhook = (await createWebhook(site, receiver.url)).id;
  }, 120_000);
  afterAll(async () => {
    await receiver?.close();
    await site?.stop();
  }, 60_000);

  const run = (nodeEnv: string, ...words: string[]) =>
    runCommand(words, { env: { ...site.env(), NODE_ENV: nodeEnv } });
  const environmentOf = async (nodeEnv: string) => {
    const { stdout } = await run(nodeEnv, 'doctor', '--json');
    const { checks } = json<{ checks: { name: string; message: string }[] }>(stdout);
    return checks.find(({ name }) => name === 'environment')?.message;
  };

  it('go by what the site says of private addresses, and say why what they sent failed', async () => {
    await insertFailed(site, webhook, 1);
    const sent = await run('production', 'recover', '--yes');
    expect([sent.code, sent.stdout]).toEqual([0, expect.stringMatching(/ 1 sent, 0 failed\n$/)]);
    expect(receiver.requests).toHaveLength(1);
    expect(await environmentOf('production')).toMatch(
      /^the site that runs says: private addresses are open \(NODE_ENV is set to development/
    );

    await site.restart({ nodeEnv: 'production' });
    await insertFailed(site, webhook, 1);
    const refused = await run('development', 'recover', '--yes');
    expect(refused.code).toBe(1);
    expect(refused.stdout).toMatch(
      new RegExp(`failed\nWhy they failed:\n +webhook ${webhook} +blocked_address +1\n$`)
    );
    expect(receiver.requests).toHaveLength(1);
    expect(await environmentOf('development')).toMatch(
      /^the site that runs says: private addresses are refused \(NODE_ENV is set to production/
    );
  }, 200_000);
});
