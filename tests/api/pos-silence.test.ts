import { WEEKDAYS } from '../../shared/contracts/pos';
import { describeEach, anyDatabase } from '../support/databases';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import { createWebhook } from './delivery-support';
import { admin, createTill, type Till } from './pos-till';

const ALWAYS = [{ days: [...WEEKDAYS], from: '00:00', to: '24:00' }];
/** The day after tomorrow: closed now, and for as long as a test takes. */
const closedNow = () => [
  { days: [WEEKDAYS[(new Date().getUTCDay() + 1) % 7]], from: '09:00', to: '18:00' },
];
const EXPECTED = { expected_every_minutes: 30, open_hours: ALWAYS };
const HOUR = 3_600_000;

describeEach(anyDatabase(), 'a till that is silent', (database) => {
  let site: Site;
  let receiver: Receiver;
  const options = {
    webhooks: { pollSeconds: 1, notifyEmail: 'owner@example.com' },
    pos: { timeZone: 'UTC', ratePerMinute: 100_000 },
  };
  beforeAll(async () => {
    receiver = await startReceiver();
    site = await startSite({ database, options });
    await createWebhook(site, receiver.url, { events: ['pos.till_silent'] });
  }, 120_000);
  afterAll(async () => {
    await receiver?.close();
    await site?.stop();
  }, 60_000);
  beforeEach(() => receiver.clear());

  const read = ({ id }: Pick<Till, 'id'>) => admin(site, 'GET', `/connections/${id}`);
  const change = ({ id }: Till, body: object) => admin(site, 'PUT', `/connections/${id}`, body);
  /** As if the till had been heard of last so many milliseconds ago. @returns that time */
  const heardAgo = (tills: readonly Till[], ago: number): Promise<number> =>
    site.evaluate(
      async ({ strapi }, [ids, at]) => {
        await strapi.db
          .connection('switchboard_connections')
          .whereIn('id', ids)
          .update({ last_seen_at: at, created_at: at });
        return at;
      },
      [tills.map(({ id }) => id), Date.now() - ago] as const
    );
  /** The look for silent tills, which the site takes four times a minute. */
  const look = (of: Site = site) => of.control('cron', { name: 'switchboardSilentTills' });
  const keepMails = (of: Site) =>
    of.evaluate(({ strapi, state }) => {
      state.mails = [];
      strapi.plugin('email').service('email').send = async (mail: unknown) => {
        state.mails.push(mail);
      };
    });
  const mailsOf = (of: Site) =>
    of.control<{ to: string; subject: string; text: string }[]>('state', { key: 'mails' });
  const names = () => receiver.requests.map(({ json }) => json.data.connection.name);

  it('is expected where its connection says how often and when, and only then', async () => {
    const plain = await createTill(site, { name: 'plain' });
    const nothing = { expected_every_minutes: null, open_hours: null, silent_since: null };
    expect(await read(plain)).toMatchObject(nothing);
    expect(await change(plain, EXPECTED)).toMatchObject({ ...EXPECTED, silent_since: null });
    expect(await change(plain, { name: 'plainer' })).toMatchObject(EXPECTED);
    expect(await change(plain, { expected_every_minutes: null, open_hours: null })).toMatchObject(
      nothing
    );
    expect(await createTill(site, EXPECTED).then(read)).toMatchObject(EXPECTED);
  });

  it.each([
    ['expected_every_minutes', { expected_every_minutes: 0 }],
    ['expected_every_minutes', { expected_every_minutes: 10_081 }],
    ['expected_every_minutes', { expected_every_minutes: 1.5 }],
    ['expected_every_minutes', { expected_every_minutes: '30' }],
    ['open_hours', { open_hours: [] }],
    ['open_hours', { open_hours: 'always' }],
    ['open_hours.0.days', { open_hours: [{ days: [], from: '09:00', to: '18:00' }] }],
    ['open_hours.0.days.0', { open_hours: [{ days: ['Monday'], from: '09:00', to: '18:00' }] }],
    ['open_hours.0.days', { open_hours: [{ days: ['mon', 'mon'], from: '09:00', to: '18:00' }] }],
    ['open_hours.0.from', { open_hours: [{ days: ['mon'], from: '9:00', to: '18:00' }] }],
    ['open_hours.0.from', { open_hours: [{ days: ['mon'], from: '24:00', to: '18:00' }] }],
    ['open_hours.0.to', { open_hours: [{ days: ['mon'], from: '09:00', to: '24:01' }] }],
    ['open_hours.0.to', { open_hours: [{ days: ['mon'], from: '09:00', to: '09:00' }] }],
    ['open_hours.0.to', { open_hours: [{ days: ['mon'], from: '09:00' }] }],
    ['open_hours.0.zone', { open_hours: [{ ...ALWAYS[0], zone: 'UTC' }] }],
    ['open_hours', { open_hours: Array.from({ length: 51 }, () => ALWAYS[0]) }],
  ])('refuses %s, case %#', async (field, wrong) => {
    const made = await site.request('POST', '/switchboard/connections', {
      body: { name: 'x', scopes: [], ...wrong },
    });
    expect([made.status, made.body.error?.details.errors[0].path.join('.')]).toEqual([400, field]);
    const till = await createTill(site);
    const changed = await site.request('PUT', `/switchboard/connections/${till.id}`, {
      body: wrong,
    });
    expect([changed.status, changed.body.error.details.errors[0].path.join('.')]).toEqual([
      400,
      field,
    ]);
  });

  it('is told of once a spell, by event, mail and its connection', async () => {
    await keepMails(site);
    // Looked at before it, each time.
    const quiet = [
      await createTill(site, { ...EXPECTED, name: 'closed now', open_hours: closedNow() }),
      await createTill(site, { ...EXPECTED, name: 'in test mode', mode: 'test' }),
      await createTill(site, { ...EXPECTED, name: 'without hours', open_hours: null }),
      await createTill(site, { ...EXPECTED, name: 'seldom', expected_every_minutes: 1000 }),
      await createTill(site, { ...EXPECTED, name: 'revoked' }),
      await createTill(site, { ...EXPECTED, name: 'off' }),
    ];
    await admin(site, 'POST', `/connections/${quiet[4]!.id}/revoke`, {}, 200);
    await change(quiet[5]!, { active: false });
    const till = await createTill(site, { ...EXPECTED, name: 'Front counter' });
    const at = await heardAgo([...quiet, till], 2 * HOUR);
    await look();
    await receiver.waitFor(1);
    const since = new Date(at).toISOString().replace('Z', '+00:00');
    expect(receiver.requests[0]?.json).toMatchObject({
      event: 'pos.till_silent',
      data: {
        connection: { id: till.id, name: 'Front counter' },
        silent_since: since,
        expected_every_minutes: 30,
      },
    });
    expect(await read(till)).toMatchObject({ silent_since: since });
    for (const one of quiet) expect(await read(one)).toMatchObject({ silent_since: null });
    const mails = await waitFor(async () => {
      const sent = await mailsOf(site);
      return sent.length > 0 ? sent : undefined;
    });
    expect(mails).toEqual([
      expect.objectContaining({
        to: 'owner@example.com',
        subject: 'The till "Front counter" is silent',
        text: expect.stringContaining('expected every 30 minutes'),
      }),
    ]);

    // Any signed request ends it; the next spell is told of again, and once.
    expect((await till.send('status', { external_ids: ['x'] })).status).toBe(200);
    await waitFor(async () => (await read(till)).silent_since === null);
    await heardAgo([till], HOUR);
    await look();
    await receiver.waitFor(2);
    // The one that is made now is told of after the others were looked at once more.
    const last = await createTill(site, { ...EXPECTED, name: 'last' });
    await heardAgo([last], HOUR);
    await look();
    await receiver.waitFor(3);
    await receiver.settle();
    expect(names()).toEqual(['Front counter', 'Front counter', 'last']);
    for (const one of [till, last]) await change(one, { active: false });
  }, 120_000);

  it('is not one that was switched on or made live a moment ago', async () => {
    const back = await createTill(site, { ...EXPECTED, name: 'back' });
    const started = await createTill(site, { ...EXPECTED, name: 'started', mode: 'test' });
    await change(back, { active: false });
    await heardAgo([back, started], 2 * HOUR);
    await change(back, { active: true });
    await change(started, { mode: 'live' });
    const other = await createTill(site, { ...EXPECTED, name: 'other' });
    await heardAgo([other], 2 * HOUR);
    await look();
    await receiver.waitFor(1);
    await receiver.settle();
    expect(names()).toEqual(['other']);
    for (const one of [back, started, other]) await change(one, { active: false });
  });

  it('is told of once by several nodes', async () => {
    const sibling = await site.sibling();
    try {
      await keepMails(site);
      await keepMails(sibling);
      const tills: Till[] = [];
      for (let n = 0; n < 10; n += 1) {
        tills.push(await createTill(site, { ...EXPECTED, name: `till ${n}` }));
      }
      await heardAgo(tills, HOUR);
      await Promise.all([look(site), look(sibling)]);
      await receiver.waitFor(10);
      await receiver.settle();
      expect(names().sort()).toEqual(tills.map((_till, n) => `till ${n}`));
      const mailed = await waitFor(async () => {
        const sent = [...(await mailsOf(site)), ...(await mailsOf(sibling))];
        return sent.length >= 10 ? sent : undefined;
      });
      expect(new Set(mailed.map(({ subject }) => subject)).size).toBe(10);
      expect(mailed).toHaveLength(10);
      for (const till of tills) await change(till, { active: false });
    } finally {
      await sibling.stop();
    }
  }, 120_000);

  it('is told of after the process was killed between the mark and the event', async () => {
    const till = await createTill(site, { ...EXPECTED, name: 'killed' });
    await site.evaluate(({ strapi, state }) => {
      strapi.hook('service_crm_webhook_payload').register(async () => {
        state.telling = true;
        await new Promise(() => undefined);
      });
    });
    await heardAgo([till], HOUR);
    void look().catch(() => undefined);
    await waitFor(() => site.control<boolean>('state', { key: 'telling' }), 60_000);
    await site.kill();
    await site.restart({ options });
    await look();
    await receiver.waitFor(1);
    await receiver.settle();
    expect(names()).toEqual(['killed']);
    expect(await read(till)).toMatchObject({ silent_since: expect.any(String) });
  }, 120_000);
});
