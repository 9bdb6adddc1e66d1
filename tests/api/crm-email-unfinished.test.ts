import { createHmac } from 'node:crypto';
import net from 'node:net';
import { startSite, type Site } from '../support/site';
import { waitFor } from '../support/wait';
import { CRM } from './crm-helpers';

/** Posts to the open routes of mail providers, by somebody who is none. */

jest.setTimeout(120_000);

const MIB = 1024 * 1024;
const BODY = Buffer.alloc(29 * MIB, 'x');

let site: Site;
const sockets: net.Socket[] = [];

beforeAll(async () => {
  site = await startSite({ options: { email: { mailgun: { signingKey: 'mailgun key' } } } });
});

afterAll(() => site?.stop());

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

/** Begins a post and does not end it. @returns the status that it is answered with meanwhile. */
const begin = (name: string, head: Record<string, string>, bytes: number): Promise<number> =>
  new Promise((resolve) => {
    const socket = net.connect(site.port, '127.0.0.1');
    sockets.push(socket);
    socket.on('error', () => {});
    socket.on('data', (data) => resolve(Number(/^HTTP\/1\.1 (\d+)/.exec(String(data))?.[1])));
    const lines = Object.entries(head).map(([key, value]) => `${key}: ${value}\r\n`);
    socket.write(`POST ${CRM}/email/${name} HTTP/1.1\r\nHost: x\r\n${lines.join('')}\r\n`);
    if (bytes > 0) socket.write(BODY.subarray(0, bytes));
  });

const MAIL = 'multipart/form-data; boundary=b';

test('are answered 404 before anything is read where no provider is configured', async () => {
  for (const type of ['application/json', MAIL]) {
    const head = { 'Content-Type': type, 'Content-Length': String(30 * MIB) };
    expect(await begin('sendgrid', head, 0)).toBe(404);
    expect(await begin('SENDGRID', head, 1000)).toBe(404);
  }
});

test('are answered 413 where they say that they are too long', async () => {
  const json = { 'Content-Type': 'application/json', 'Content-Length': String(MIB + 1) };
  expect(await begin('mailgun', json, 0)).toBe(413);
  const mail = { 'Content-Type': MAIL, 'Content-Length': String(32 * MIB + 1) };
  expect(await begin('mailgun', mail, 0)).toBe(413);
  const chunked = { 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' };
  const answer = begin('mailgun', chunked, 0);
  const socket = sockets.at(-1)!;
  socket.write(`${(2 * MIB).toString(16)}\r\n`);
  socket.write(Buffer.alloc(2 * MIB));
  expect(await answer).toBe(413);
});

test('hold little together, and room is there again when they have gone', async () => {
  const head = { 'Content-Type': MAIL, 'Content-Length': String(30 * MIB) };
  const before = (await site.control<{ rss: number }>('memory')).rss;
  const answers: number[] = [];
  for (let post = 0; post < 20; post += 1) {
    void begin('mailgun', head, 29 * MIB).then((status) => answers.push(status));
  }
  // One of them may find room for as long as it does not end.
  await waitFor(() => answers.length >= 19, 60_000, 'the others to be refused');
  expect(new Set(answers)).toEqual(new Set([503]));
  const { rss } = await site.control<{ rss: number }>('memory');
  expect(rss - before).toBeLessThan(200 * MIB);

  for (const socket of sockets.splice(0)) socket.destroy();
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signature = createHmac('sha256', 'mailgun key').update(`${timestamp}t`).digest('hex');
  const body = { signature: { timestamp, token: 't', signature }, 'event-data': {} };
  // The site hears of it a moment after the sockets are gone.
  const genuine = await waitFor(
    async () => {
      const answer = await site.request('POST', `${CRM}/email/mailgun`, { as: 'nobody', body });
      return answer.status === 503 ? null : answer;
    },
    20_000,
    'room for a genuine post'
  );
  expect([genuine.status, genuine.body]).toEqual([200, { received: 0, recorded: 0 }]);
});

test('fail so often and are then told to wait, while one that is signed passes', async () => {
  const post = (body: unknown) =>
    site.request('POST', `${CRM}/email/mailgun`, { as: 'nobody', body });
  let answer = await post({});
  for (let tries = 0; answer.status === 401 && tries < 40; tries += 1) answer = await post({});
  expect(answer.status).toBe(429);
  expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1);
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signature = createHmac('sha256', 'mailgun key').update(`${timestamp}u`).digest('hex');
  const body = { signature: { timestamp, token: 'u', signature }, 'event-data': {} };
  expect((await post(body)).status).toBe(200);
});
