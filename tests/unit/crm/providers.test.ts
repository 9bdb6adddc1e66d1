import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { createMailgun } from '../../../server/src/crm/email/providers/mailgun';
import { createSendgrid, sendgridKey } from '../../../server/src/crm/email/providers/sendgrid';
import { addressOf } from '../../../server/src/crm/email/providers/values';

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

describe('SendGrid', () => {
  const pair = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const publicKey = pair.publicKey.export({ format: 'der', type: 'spki' }).toString('base64');
  const sendgrid = createSendgrid(sendgridKey(publicKey));
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
    const provider = createSendgrid(key);
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
      { event: 'open' },
      null,
    ]);
    const about = { id: 'e1', email: 'a@example.test', campaign: 'c1' };
    expect(await sendgrid.read(signed(body))).toEqual([
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
        from: 'ada@example.test',
        text: 'Hi\nthere',
      },
    ]);
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
  const mailgun = createMailgun('key', () => NOW);
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
  const base = { recipient: 'a@example.test', 'user-variables': { campaign_id: 'c1' } };
  const about = { id: 't'.repeat(50), email: 'a@example.test', campaign: 'c1' };

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
    expect(await event({ ...base, ...seen, event: 'opened' })).toEqual([
      { ...about, type: 'opened', ...read },
    ]);
    expect(await event({ ...base, ...seen, event: 'clicked', url: 'https://x.test/' })).toEqual([
      { ...about, type: 'clicked', url: 'https://x.test/', ...read },
    ]);
    expect(
      await event({ ...base, event: 'failed', severity: 'permanent', reason: 'bounce' })
    ).toEqual([{ ...about, type: 'bounced', hard: true, reason: 'bounce' }]);
    expect(await event({ ...base, event: 'failed', severity: 'temporary' })).toEqual([
      { ...about, type: 'bounced', hard: false, reason: null },
    ]);
    expect(await event({ ...base, event: 'complained' })).toEqual([
      { ...about, type: 'complained' },
    ]);
    expect(await event({ ...base, event: 'unsubscribed' })).toEqual([
      { ...about, type: 'unsubscribed' },
    ]);
    expect(await event({ ...base, event: 'delivered' })).toEqual([]);
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
        from: 'ada@example.test',
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

  it('refuses another key, an old signature and anything else', async () => {
    expect(await event(base, signature('1700000000', 'x', 'other'))).toBeNull();
    expect(await event(base, signature(String(1_700_000_000 - 4 * 86_400)))).toBeNull();
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
