import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { describeEach, anyDatabase } from '../support/databases';
import { BootError } from '../support/site-process';
import { type Site, startSite } from '../support/site';
import { CRM, type EventLog, inCode, names, openEventLog } from './crm-helpers';

const pair = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
const publicKey = pair.publicKey.export({ format: 'der', type: 'spki' }).toString('base64');
const PERSON = 'Mozilla/5.0 (X11; Linux x86_64; rv:68.0) Gecko/20100101 Thunderbird/68.2.1';

describeEach(anyDatabase(), 'what becomes of e-mail', (database) => {
  let site: Site;
  let log: EventLog;
  let campaign: { id: string };
  let made = 0;

  beforeAll(async () => {
    site = await startSite({
      database,
      options: {
        webhooks: { dispatch: false },
        email: { sendgrid: { publicKey }, mailgun: { signingKey: 'mailgun key' } },
      },
    });
    log = await openEventLog(site);
    campaign = (
      await site.request('POST', `${CRM}/campaigns`, {
        body: { title: 'Spring', subject: 'Offer' },
      })
    ).body;
  }, 180_000);
  afterAll(() => site?.stop(), 60_000);

  const record = (method: string, input: object) =>
    site.control('service', { uid: 'plugin::switchboard.email', method, args: [input] });
  const newContact = async () => {
    made += 1;
    const { body } = await site.request('POST', `${CRM}/contacts`, {
      body: { email: `Reader${made}@example.test` },
    });
    await log.take();
    return body;
  };
  const contactOf = async (id: string) => (await site.request('GET', `${CRM}/contacts/${id}`)).body;

  describe('recorders', () => {
    it('count opens and clicks by people and say why not by machines', async () => {
      const contact = await newContact();
      const ids = { campaign: campaign.id, contact: contact.id };
      const click = { ...ids, url: 'https://example.test/' };
      expect(await record('opened', { ...ids, userAgent: PERSON })).toEqual({ counted: true });
      expect(await record('clicked', { ...click, userAgent: PERSON })).toEqual({ counted: true });
      expect(await record('opened', { ...ids, userAgent: 'Mozilla/5.0' })).toEqual({
        counted: false,
        because: 'prefetch',
      });
      const quick = { ...click, userAgent: PERSON, at: 2000, sentAt: 1000 };
      expect(await record('clicked', quick)).toEqual({ counted: false, because: 'too_fast' });
      const data = { campaign_id: campaign.id, contact };
      expect(await log.take()).toEqual([
        { event: 'email.opened', data },
        { event: 'email.clicked', data: { ...data, url: 'https://example.test/' } },
      ]);
    });

    it('a hard bounce and a complaint change the status first; a soft bounce does not', async () => {
      for (const [method, extra, status] of [
        ['bounced', { type: 'hard' }, 'bounced'],
        ['complained', {}, 'complained'],
      ] as const) {
        const { id } = await newContact();
        await record(method, { campaign: campaign.id, contact: id, ...extra });
        const contact = await contactOf(id);
        expect(contact.status).toBe(status);
        expect(await log.take()).toEqual([
          { event: 'contact.updated', data: { contact, changed: ['status'] } },
          { event: `email.${method}`, data: { campaign_id: campaign.id, contact } },
        ]);
      }
      const { id } = await newContact();
      await record('bounced', { campaign: campaign.id, contact: id, type: 'soft' });
      const [event] = await log.take();
      expect(event?.data.contact.status).toBe('pending');
    });

    it('email.received carries the message', async () => {
      const contact = await newContact();
      const message = { subject: 'Re', from: contact.email, text: 'Hi' };
      await record('received', { contact: contact.id, ...message });
      expect(await log.take()).toEqual([
        { event: 'email.received', data: { contact, ...message, deal_id: null } },
      ]);
    });

    it('campaign.sent comes once, from the recorder or from the content manager', async () => {
      const counts = { total: 10, sent: 9, failed: 1 };
      const input = { campaign: campaign.id, ...counts };
      expect(await record('campaignSent', input)).toEqual({ counted: true });
      expect(await record('campaignSent', input)).toMatchObject({ because: 'already_sent' });
      expect(await log.take()).toEqual([
        {
          event: 'campaign.sent',
          data: { id: campaign.id, title: 'Spring', subject: 'Offer', ...counts },
        },
      ]);
      const { documentId } = await inCode(site, 'campaign').create({ title: 'By hand' });
      await site.request(
        'PUT',
        `/content-manager/collection-types/plugin::switchboard.campaign/${documentId}`,
        { as: 'admin', body: { campaign_status: 'sent' } }
      );
      expect(names(await log.take())).toEqual(['campaign.sent']);
    });

    it('refuse unknown ids and wrong values by name', async () => {
      const { id } = await newContact();
      const cases: [string, object, RegExp][] = [
        ['opened', { campaign: campaign.id, contact: 'nobody' }, /Contact not found/],
        ['opened', { campaign: 'none', contact: id }, /Campaign not found/],
        ['clicked', { campaign: campaign.id, contact: id }, /url/],
        ['bounced', { campaign: campaign.id, contact: id, type: 'odd' }, /type/],
        ['campaignSent', { campaign: campaign.id, total: -1, sent: 0, failed: 0 }, /total/],
        ['received', { contact: id, deal: 'none' }, /Deal not found/],
      ];
      for (const [method, input, message] of cases) {
        await expect(record(method, input)).rejects.toThrow(message);
      }
      expect(await log.take()).toEqual([]);
    });
  });

  const post = (path: string, body: string, headers: Record<string, string> = {}) =>
    site.request('POST', `${CRM}${path}`, {
      as: 'nobody',
      body: Buffer.from(body),
      headers: { 'content-type': 'application/json', ...headers },
    });
  const sendgrid = (events: object[], at = Date.now()) => {
    const body = JSON.stringify(events);
    const timestamp = String(Math.floor(at / 1000));
    return post('/email/sendgrid', body, {
      'X-Twilio-Email-Event-Webhook-Timestamp': timestamp,
      'X-Twilio-Email-Event-Webhook-Signature': sign(
        'sha256',
        Buffer.from(timestamp + body),
        pair.privateKey
      ).toString('base64'),
    });
  };
  const signature = (token: string) => {
    const timestamp = String(Math.floor(Date.now() / 1000));
    const digest = createHmac('sha256', 'mailgun key')
      .update(timestamp + token)
      .digest('hex');
    return { timestamp, token, signature: digest };
  };

  describe('providers', () => {
    it("SendGrid's posts count once each, however often they come", async () => {
      const contact = await newContact();
      const base = { email: contact.email.toUpperCase(), campaign_id: campaign.id };
      const events = [
        { ...base, event: 'open', useragent: PERSON, timestamp: 1700000000, sg_event_id: 'a' },
        { ...base, event: 'open', useragent: PERSON, sg_machine_open: true, sg_event_id: 'b' },
        { ...base, event: 'click', useragent: PERSON, url: 'https://x.test/', sg_event_id: 'c' },
        { ...base, email: 'stranger@example.test', event: 'open', sg_event_id: 'd' },
        { ...base, campaign_id: 'gone', event: 'click', useragent: PERSON, sg_event_id: 'e' },
        { ...base, event: 'bounce', type: 'bounce', sg_event_id: 'f' },
      ];
      const answer = await sendgrid(events);
      expect([answer.status, answer.body.received]).toEqual([200, 6]);
      expect(names(await log.take())).toEqual([
        'email.opened',
        'email.clicked',
        'contact.updated',
        'email.bounced',
      ]);
      await sendgrid(events);
      expect(await log.take()).toEqual([]);
    });

    it('old ones and ones ahead of time count for nothing, nor does one without an id twice', async () => {
      const contact = await newContact();
      const open = [
        { email: contact.email, campaign_id: campaign.id, event: 'open', useragent: PERSON },
      ];
      const day = 86_400_000;
      expect((await sendgrid(open, Date.now() - 3 * day - 60_000)).status).toBe(401);
      expect((await sendgrid(open, Date.now() + 600_000)).status).toBe(401);
      expect(await log.take()).toEqual([]);
      expect((await sendgrid(open, Date.now() - 3 * day + 60_000)).body.recorded).toBe(1);
      expect((await sendgrid(open)).body.recorded).toBe(0);
      expect(names(await log.take())).toEqual(['email.opened']);
    });

    it('a token of Mailgun’s counts with the event that it came with, and with no other', async () => {
      const contact = await newContact();
      const signed = signature('bound');
      const send = (data: object) =>
        post('/email/mailgun', JSON.stringify({ signature: signed, 'event-data': data }));
      // Not counted at all, and yet its token is used up.
      const delivered = { id: 'd1', event: 'delivered', recipient: contact.email };
      expect((await send(delivered)).body).toEqual({ received: 0, recorded: 0 });
      const forged = { id: 'd2', event: 'complained', recipient: contact.email };
      expect((await send(forged)).status).toBe(401);
      expect((await send(forged)).status).toBe(401);
      expect((await send(delivered)).status).toBe(200);
      expect(await log.take()).toEqual([]);
    });

    it('an event that Mailgun posts again with another token counts once', async () => {
      const contact = await newContact();
      const data = { id: 'again', event: 'unsubscribed', recipient: contact.email };
      const send = (token: string) =>
        post('/email/mailgun', JSON.stringify({ signature: signature(token), 'event-data': data }));
      const answers = await Promise.all(['a1', 'a2', 'a3', 'a3', 'a3'].map(send));
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
      expect(answers.map(({ body }) => body.recorded).sort()).toEqual([0, 0, 0, 0, 1]);
      expect(names(await log.take())).toEqual(['contact.updated', 'contact.unsubscribed']);
    });

    it("Mailgun's posts and forwarded mail", async () => {
      const contact = await newContact();
      const data = { event: 'unsubscribed', recipient: contact.email };
      const body = JSON.stringify({ signature: signature('one'), 'event-data': data });
      expect((await post('/email/mailgun', body)).status).toBe(200);
      expect(names(await log.take())).toEqual(['contact.updated', 'contact.unsubscribed']);

      const fields = {
        ...signature('two'),
        from: `A <${contact.email}>`,
        subject: 'Re',
        'stripped-text': 'Hi',
      };
      const form = new URLSearchParams(fields).toString();
      const headers = { 'content-type': 'application/x-www-form-urlencoded' };
      expect((await post('/email/mailgun', form, headers)).status).toBe(200);
      expect((await post('/email/mailgun', form, headers)).body.recorded).toBe(0);
      const events = await log.take();
      expect(events.map(({ event, data: { subject, text } }) => [event, subject, text])).toEqual([
        ['email.received', 'Re', 'Hi'],
      ]);
    });

    it('believe no post without a signature that holds', async () => {
      for (const path of ['/email/sendgrid', '/email/mailgun', '/EMAIL/sendgrid']) {
        for (const body of ['[]', '{}', '', 'x', '[{"event":"open"}]']) {
          expect((await post(path, body)).status).toBe(401);
        }
      }
    });
  });

  it('sends none of it while its module is off', async () => {
    const { id } = await newContact();
    const put = (enabled: boolean) =>
      site.request('PUT', '/switchboard/modules', {
        body: { email_marketing: enabled, email_conversations: enabled },
      });
    await put(false);
    await record('opened', { campaign: campaign.id, contact: id, userAgent: PERSON });
    await record('received', { contact: id });
    const events = await log.take();
    await put(true);
    expect(events).toEqual([]);
  });
});

it('a key that is none stops the boot and is named', async () => {
  const boot = startSite({
    accounts: false,
    options: { email: { sendgrid: { publicKey: 'nonsense' } } },
  }).then((site) => site.stop());
  await expect(boot).rejects.toThrow(BootError);
  await boot.catch((error: BootError) => {
    expect(error.log).toContain('switchboard.email.sendgrid.publicKey');
  });
}, 120_000);
