// npm run demo:events: makes every event of the catalogue happen once on the running playground
// (`npm start` in another terminal) and says which of them the receiver got.
import { createHmac, randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { ROOT } from './lib/paths.mjs';

const DATA = path.resolve(process.env.PLAYGROUND_DATA ?? path.join(ROOT, 'playground/.tmp'));
const SIGNING_KEY = process.env.MAILGUN_SIGNING_KEY ?? 'playground-signing-key';
const DEADLINE_MS = 20_000;

const readPlayground = () => {
  try {
    return JSON.parse(fs.readFileSync(path.join(DATA, 'playground.json'), 'utf8'));
  } catch {
    console.error('No playground runs here yet: start it with `npm start` first.');
    process.exit(1);
  }
};

const { siteUrl, receiverUrl, apiToken } = readPlayground();

const call = async (method, route, body, headers = { authorization: `Bearer ${apiToken}` }) => {
  const answer = await fetch(`${siteUrl}/api${route}`, {
    method,
    headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
    body: body && JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${route}: ${answer.status} ${text.slice(0, 400)}`);
  return text ? JSON.parse(text) : null;
};
const crm = (method, route, body) => call(method, `/fw-crm/v1${route}`, body);

const run = randomUUID().slice(0, 8);
const address = (name) => `${name}.${run}@example.test`;
const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';

const mailgunSignature = () => {
  const timestamp = String(Math.floor(Date.now() / 1000));
  const token = randomUUID();
  const signature = createHmac('sha256', SIGNING_KEY)
    .update(timestamp + token)
    .digest('hex');
  return { timestamp, token, signature };
};

/** A request of the mail provider, signed as Mailgun signs. */
const mailEvent = (event, recipient, campaignId, more = {}) =>
  call(
    'POST',
    '/fw-crm/v1/email/mailgun',
    {
      signature: mailgunSignature(),
      'event-data': {
        event,
        recipient,
        timestamp: Date.now() / 1000,
        'client-info': { 'user-agent': BROWSER },
        'user-variables': { campaign_id: campaignId },
        ...more,
      },
    },
    {}
  );

const inboundMail = async (from, subject, text) => {
  const form = new FormData();
  const fields = {
    ...mailgunSignature(),
    from,
    sender: from,
    subject,
    'stripped-text': text,
    'body-plain': text,
  };
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  const answer = await fetch(`${siteUrl}/api/fw-crm/v1/email/mailgun`, {
    method: 'POST',
    body: form,
  });
  if (!answer.ok) throw new Error(`inbound mail: ${answer.status} ${await answer.text()}`);
};

const contacts = async () => {
  const tag = await crm('POST', '/tags', { name: `Demo ${run}`, slug: `demo-${run}` });
  const contact = await crm('POST', '/contacts', { email: address('demo'), first_name: 'Demo' });
  await crm('PATCH', `/contacts/${contact.id}`, { job_title: 'Buyer' });
  await crm('POST', `/contacts/${contact.id}/tags/${tag.id}`);
  await crm('DELETE', `/contacts/${contact.id}/tags/${tag.id}`);
  await crm('PATCH', `/contacts/${contact.id}`, { status: 'subscribed' });
  await crm('PATCH', `/contacts/${contact.id}`, { status: 'unsubscribed' });
  await crm('DELETE', `/contacts/${contact.id}`);
  await call('POST', '/inquiries', {
    data: { mail: address('inquiry'), firstName: 'Ida', message: 'Do you deliver on Saturdays?' },
  });
};

const work = async () => {
  const task = await crm('POST', '/tasks', { title: 'Call back', type: 'call' });
  await crm('PATCH', `/tasks/${task.id}`, { status: 'done', outcome: 'They will order' });
  const company = await crm('POST', '/companies', { name: `Demo Ltd ${run}` });
  await crm('PATCH', `/companies/${company.id}`, { industry: 'Retail' });
  await crm('DELETE', `/companies/${company.id}`);
  const first = await crm('POST', '/deal-stages', { name: 'New', position: 1 });
  const second = await crm('POST', '/deal-stages', { name: 'Offer', position: 2 });
  const deal = await crm('POST', '/deals', { title: 'Shelves', stage_id: first.id });
  await crm('PATCH', `/deals/${deal.id}`, { stage_id: second.id });
  await crm('PATCH', `/deals/${deal.id}`, { status: 'won' });
  const lost = await crm('POST', '/deals', { title: 'Counter', stage_id: first.id });
  await crm('PATCH', `/deals/${lost.id}`, { status: 'lost', lost_reason: 'Too dear' });
  await crm('DELETE', `/deals/${deal.id}`);
};

const mail = async () => {
  const email = address('reader');
  await crm('POST', '/contacts', { email, first_name: 'Reader', status: 'subscribed' });
  const campaign = await crm('POST', '/campaigns', { title: `Demo ${run}`, subject: 'News' });
  await crm('PATCH', `/campaigns/${campaign.id}`, { status: 'sent' });
  await mailEvent('opened', email, campaign.id);
  await mailEvent('clicked', email, campaign.id, { url: 'https://example.com/offer' });
  await mailEvent('complained', email, campaign.id);
  const other = address('bounce');
  await crm('POST', '/contacts', { email: other, first_name: 'Bounce' });
  await mailEvent('failed', other, campaign.id, { severity: 'permanent', reason: 'no such box' });
  await inboundMail(email, 'Re: News', 'Please send me two.');
};

const ping = async () => {
  const { data } = await crm('GET', '/webhooks?per_page=100');
  const webhook = data.find(({ name }) => name === 'Playground receiver');
  if (!webhook) throw new Error('The webhook to the playground’s receiver is gone.');
  await crm('POST', `/webhooks/${webhook.id}/test`);
};

const arrived = async () => {
  const answer = await fetch(new URL('/arrivals.json', receiverUrl));
  const arrivals = await answer.json();
  return new Set(arrivals.map(({ event }) => event));
};

const { data: catalogue } = await crm('GET', '/webhooks/events');
// The till of the playground tells about sales and stock, and the demo plugin about its own event.
const expected = catalogue
  .filter(({ group, event }) => group !== 'Point of sale' && !event.startsWith('demo'))
  .filter(({ module, event }) => module !== null || /^(contact|form|task)\./.test(event))
  .map(({ event }) => event);
expected.push('ping');

await contacts();
await work();
await mail();
await ping();

const until = Date.now() + DEADLINE_MS;
let got = await arrived();
while (expected.some((event) => !got.has(event)) && Date.now() < until) {
  await new Promise((resolve) => setTimeout(resolve, 200));
  got = await arrived();
}
for (const event of expected) console.log(`${got.has(event) ? 'arrived' : 'MISSING'}  ${event}`);
const missing = expected.filter((event) => !got.has(event));
console.log(
  `${expected.length - missing.length} of ${expected.length} events arrived at the receiver`
);
process.exit(missing.length === 0 ? 0 : 1);
