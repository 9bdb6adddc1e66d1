import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import {
  addressOf,
  mailgun as mailgunOf,
  type Provider,
  type ProviderEvent,
  type ProviderPost,
  sendgrid as sendgridOf,
  sendgridKey,
} from '../../../server/src/crm/email/signed-posts';

const post = (
  body: string | Buffer,
  contentType: string,
  headers: Record<string, string> = {}
) => ({
  bytes: Buffer.from(body),
  contentType,
  header: (name: string) => headers[name],
});

const form = (fields: Record<string, string>) => {
  const parts = Object.entries(fields).map(
    ([name, value]) =>
      `--boundary\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
  );
  return `${parts.join('')}--boundary--\r\n`;
};
const MULTIPART = 'multipart/form-data; boundary=boundary';

const eventsOf =
  (
    provider: Provider,
    now: () => number
  ): ((post: ProviderPost) => Promise<ProviderEvent[] | null>) =>
  async (one) =>
    (await provider(one, now()))?.events ?? null;

describe('SendGrid', () => {
  const pair = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const publicKey = pair.publicKey.export({ format: 'der', type: 'spki' }).toString('base64');
  let now = 1_700_000_000_000;
  const sendgrid = { read: eventsOf(sendgridOf(sendgridKey(publicKey)), () => now) };
  const signed = (body: string, contentType = 'application/json', timestamp = '1700000000') =>
    post(body, contentType, {
      'x-twilio-email-event-webhook-timestamp': timestamp,
      'x-twilio-email-event-webhook-signature': sign(
        'sha256',
        Buffer.from(timestamp + body),
        pair.privateKey
      ).toString('base64'),
    });

  it("verifies the example that SendGrid's own library publishes", async () => {
    const key = sendgridKey(
      'MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEEDr2LjtURuePQzplybdC+u4CwrqDqBaWjcMMsTbhdbcwHBcepxo7yAQGhHPTnlvFYPAZFceEu/1FwCM/QmGUhA=='
    );
    const body = JSON.stringify({
      category: 'example_payload',
      event: 'test_event',
      message_id: 'message_id',
    });
    const headers = {
      'x-twilio-email-event-webhook-timestamp': '1588788367',
      'x-twilio-email-event-webhook-signature':
        'MEUCIQCtIHJeH93Y+qpYeWrySphQgpNGNr/U+UyUlBkU6n7RAwIgJTz2C+8a8xonZGi6BpSzoQsbVRamr2nlxFDWYNH2j/0=',
    };
    const provider = { read: eventsOf(sendgridOf(key), () => 1_588_788_367_000) };
    expect(await provider.read(post(body, 'application/json', headers))).toEqual([]);
    expect(await provider.read(post(`${body} `, 'application/json', headers))).toBeNull();
  });

  it('reads opens, clicks, bounces, complaints and unsubscribes', async () => {
    const base = { email: 'a@example.test', sg_event_id: 'e1', campaign_id: 'c1', ip: '192.0.2.1' };
    const body = JSON.stringify([
      { ...base, event: 'open', useragent: 'UA', timestamp: 1700000000, sg_machine_open: true },
      {
        ...base,
        event: 'click',
        url: 'https://x.test/',
        timestamp: 1700000000,
        sent_at: '1699999999',
      },
      { ...base, event: 'bounce', type: 'bounce', reason: '550' },
      { ...base, event: 'bounce', type: 'blocked' },
      { ...base, event: 'spamreport' },
      { ...base, event: 'group_unsubscribe' },
      { ...base, event: 'delivered' },
      { ...base, event: 'constructor' },
      { event: 'open' },
      null,
    ]);
    const about = { id: 'e1', email: 'a@example.test', campaign: 'c1' };
    expect(await sendgrid.read(signed(body))).toMatchObject([
      {
        ...about,
        type: 'opened',
        userAgent: 'UA',
        ip: '192.0.2.1',
        at: 1_700_000_000_000,
        sentAt: null,
        machine: true,
      },
      {
        ...about,
        type: 'clicked',
        url: 'https://x.test/',
        userAgent: null,
        ip: '192.0.2.1',
        at: 1_700_000_000_000,
        sentAt: 1_699_999_999_000,
        machine: false,
      },
      { ...about, type: 'bounced', hard: true, reason: '550' },
      { ...about, type: 'bounced', hard: false, reason: null },
      { ...about, type: 'complained' },
      { ...about, type: 'unsubscribed' },
    ]);
  });

  it('reads inbound mail', async () => {
    const body = form({
      headers: 'Received: x\nMessage-ID: <m1@example.test>\n',
      from: 'Ada L <ada@example.test>',
      subject: 'Hello',
      text: 'Hi\nthere',
    });
    expect(await sendgrid.read(signed(body, MULTIPART))).toEqual([
      {
        id: '<m1@example.test>',
        email: 'ada@example.test',
        campaign: null,
        type: 'received',
        subject: 'Hello',
        text: 'Hi\nthere',
      },
    ]);
  });

  it('refuses what was signed more than three days ago, or ahead of time', async () => {
    const body = JSON.stringify([{ email: 'a@example.test', event: 'open' }]);
    const days = 3 * 86_400_000;
    for (const [at, isRead] of [
      [1_700_000_000_000 + days, true],
      [1_700_000_000_000 + days + 1000, false],
      [1_700_000_000_000 - 300_000, true],
      [1_700_000_000_000 - 301_000, false],
    ] as const) {
      now = at;
      expect((await sendgrid.read(signed(body))) !== null).toBe(isRead);
    }
    now = 1_700_000_000_000;
    for (const timestamp of ['1e9', '01700000000', '-1', '', ' 1700000000']) {
      expect(await sendgrid.read(signed(body, 'application/json', timestamp))).toBeNull();
    }
  });

  it('knows an event without an id by its content', async () => {
    const open = { email: 'a@example.test', event: 'open' };
    const body = JSON.stringify([open, open, { ...open, ip: '192.0.2.1' }]);
    const ids = (await sendgrid.read(signed(body)))!.map(({ id }) => id);
    expect(ids[0]).toBe(ids[1]);
    expect(ids[0]).not.toBe(ids[2]);
  });

  it('refuses what is not signed by that key', async () => {
    expect(await sendgrid.read(post('[]', 'application/json'))).toBeNull();
    const other = signed('[]');
    expect(await sendgrid.read({ ...other, bytes: Buffer.from('[ ]') })).toBeNull();
    const garbage = {
      'x-twilio-email-event-webhook-timestamp': '1',
      'x-twilio-email-event-webhook-signature': '%%',
    };
    expect(await sendgrid.read(post('[]', 'application/json', garbage))).toBeNull();
    expect(() => sendgridKey('no key')).toThrow();
  });
});

describe('Mailgun', () => {
  const NOW = 1_700_000_000_000;
  const provider = mailgunOf('key');
  const mailgun = { read: eventsOf(provider, () => NOW) };
  const signature = (timestamp = '1700000000', token = 't'.repeat(50), key = 'key') => ({
    timestamp,
    token,
    signature: createHmac('sha256', key)
      .update(timestamp + token)
      .digest('hex'),
  });
  const event = (data: object, signed: object = signature()) =>
    mailgun.read(
      post(JSON.stringify({ signature: signed, 'event-data': data }), 'application/json')
    );
  const base = { id: 'e1', recipient: 'a@example.test', 'user-variables': { campaign_id: 'c1' } };
  const about = { id: 'e1', email: 'a@example.test', campaign: 'c1' };

  it('reads each event', async () => {
    const client = { 'user-agent': 'UA', bot: 'apple' };
    const seen = { ip: '192.0.2.1', timestamp: 1700000000.5, 'client-info': client };
    const read = {
      userAgent: 'UA',
      ip: '192.0.2.1',
      at: 1_700_000_000_500,
      sentAt: null,
      machine: true,
    };
    expect(await event({ ...base, ...seen, event: 'opened' })).toMatchObject([
      { ...about, type: 'opened', ...read },
    ]);
    expect(
      await event({ ...base, ...seen, event: 'clicked', url: 'https://x.test/' })
    ).toMatchObject([{ ...about, type: 'clicked', url: 'https://x.test/', ...read }]);
    expect(
      await event({ ...base, event: 'failed', severity: 'permanent', reason: 'bounce' })
    ).toMatchObject([{ ...about, type: 'bounced', hard: true, reason: 'bounce' }]);
    expect(await event({ ...base, event: 'failed', severity: 'temporary' })).toMatchObject([
      { ...about, type: 'bounced', hard: false, reason: null },
    ]);
    expect(await event({ ...base, event: 'complained' })).toMatchObject([
      { ...about, type: 'complained' },
    ]);
    expect(await event({ ...base, event: 'unsubscribed' })).toMatchObject([
      { ...about, type: 'unsubscribed' },
    ]);
    expect(await event({ ...base, event: 'delivered' })).toEqual([]);
    expect(await event({ ...base, event: 'constructor' })).toEqual([]);
  });

  it('reads inbound mail, multipart and urlencoded', async () => {
    const fields = {
      ...signature(),
      sender: 'bounce@example.test',
      from: '"L, Ada" <ada@example.test>',
      subject: 'Hello',
      'body-plain': 'Hi > quoted',
      'stripped-text': 'Hi',
    };
    const expected = [
      {
        id: 't'.repeat(50),
        email: 'ada@example.test',
        campaign: null,
        type: 'received',
        subject: 'Hello',
        text: 'Hi',
      },
    ];
    expect(await mailgun.read(post(form(fields), MULTIPART))).toEqual(expected);
    const urlencoded = new URLSearchParams(fields).toString();
    expect(await mailgun.read(post(urlencoded, 'application/x-www-form-urlencoded'))).toEqual(
      expected
    );
    const forged = form({ ...fields, token: 'x' });
    expect(await mailgun.read(post(forged, MULTIPART))).toBeNull();
  });

  it('says which token may count, and with what', async () => {
    const read = async (data: object) =>
      (await provider(
        post(JSON.stringify({ signature: signature(), 'event-data': data }), 'application/json'),
        NOW
      ))!.once!;
    const first = await read({ ...base, event: 'delivered' });
    expect(first.token).toBe('t'.repeat(50));
    expect(await read({ ...base, event: 'delivered' })).toEqual(first);
    expect((await read({ ...base, event: 'opened' })).content).not.toBe(first.content);
  });

  it('parses nothing for whoever shows no signature, and takes no other than the body’s own', async () => {
    const parse = jest.spyOn(JSON, 'parse');
    const big = JSON.stringify({
      signature: signature('1700000000', 'x', 'other'),
      big: 'x'.repeat(1e5),
    });
    expect(await mailgun.read(post(big, 'application/json'))).toBeNull();
    expect(parse.mock.calls.filter(([text]) => String(text).length > 1000)).toEqual([]);
    parse.mockRestore();
    const shown = {
      inner: { signature: signature() },
      signature: { token: 'x' },
      'event-data': base,
    };
    expect(await mailgun.read(post(JSON.stringify(shown), 'application/json'))).toBeNull();
    const text = form({ ...signature('1700000000', 'x', 'other'), text: form(signature()) });
    expect(await mailgun.read(post(text, MULTIPART))).toBeNull();
  });

  it('refuses another key, an old signature and anything else', async () => {
    expect(await event(base, signature('1700000000', 'x', 'other'))).toBeNull();
    expect(await event(base, signature(String(1_700_000_000 - 4 * 86_400)))).toBeNull();
    expect(await event(base, signature(String(1_700_000_000 + 301)))).toBeNull();
    expect(await event(base, {})).toBeNull();
    for (const body of ['', '[]', 'null', '{"signature":1}']) {
      expect(await mailgun.read(post(body, 'application/json'))).toBeNull();
    }
    expect(await mailgun.read(post('x', MULTIPART))).toBeNull();
  });
});

it.each([
  ['Ada <ada@example.test>', 'ada@example.test'],
  ['ada@example.test', 'ada@example.test'],
  ['"<x>" <ada@example.test>', 'ada@example.test'],
  ['nobody', null],
  [undefined, null],
])('the address of %s is %s', (from, address) => {
  expect(addressOf(from)).toBe(address);
});
