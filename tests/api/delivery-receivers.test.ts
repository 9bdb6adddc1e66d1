import https from 'node:https';
import net from 'node:net';
import type { AddressInfo } from 'node:net';
import zlib from 'node:zlib';
import type { Delivery } from '../../shared/contracts/webhooks';
import { createSelfSigned } from '../unit/net/self-signed';
import { type Receiver, type Script, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import {
  createWebhook,
  removeWebhooks,
  send,
  testWebhook,
  waitForDelivery,
} from './delivery-support';

const TIMEOUT_MS = 1500;
/** Beyond the deadline: the queue, the recording and a busy machine. */
const SLACK_MS = 6000;

/** A TCP server that says these bytes, whatever it is asked. */
const startRaw = async (say: (socket: net.Socket) => void) => {
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('data', () => say(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
};

describe.each(['got', 'node'])('with %s as the client, a receiver that misbehaves', (client) => {
  let site: Site;
  let receiver: Receiver;

  beforeAll(async () => {
    receiver = await startReceiver();
    site = await startSite({
      options: {
        webhooks: { client, timeoutMs: TIMEOUT_MS, disableAfterFailures: 1000, pollSeconds: 1 },
      },
    });
  }, 120_000);
  afterAll(async () => {
    await receiver?.close();
    await site?.stop();
  }, 60_000);
  afterEach(() => removeWebhooks(site));

  /** One event to one webhook; its delivery after the first attempt. */
  const deliver = async (url: string): Promise<Delivery> => {
    const { id } = await createWebhook(site, url);
    await send(site, 'order.placed', { n: 1 });
    const delivery = await waitForDelivery(
      site,
      id,
      ({ tries }) => tries === 1,
      TIMEOUT_MS + SLACK_MS
    );
    expect(delivery.duration_ms).toBeLessThan(TIMEOUT_MS + SLACK_MS);
    return delivery;
  };
  const deliverTo = (script: Script): Promise<Delivery> => {
    receiver.respond(script);
    return deliver(receiver.url);
  };

  it.each<[string, Script, string]>([
    ['never answers', { hang: true }, 'timeout'],
    ['sends the head and then a byte now and then', { drip: 200 }, 'timeout'],
    ['closes before its answer', { close: 'before' }, 'closed'],
    ['closes in the middle of its answer', { status: 200, close: 'middle' }, 'closed'],
    ['says that it is broken', { status: 500, body: 'broken' }, 'http_500'],
    ['says that it knows of nothing there', { status: 404 }, 'http_404'],
  ])('and %s is a failure with its cause, within the deadline', async (_how, script, cause) => {
    const delivery = await deliverTo(script);
    expect(delivery).toMatchObject({ status: 'pending', tries: 1, error: cause });
    expect(delivery.attempts).toHaveLength(1);
    expect(delivery.attempts[0]).toMatchObject({ error: cause, manual: false });
    const pause = Date.parse(delivery.next_attempt_at!) - Date.parse(delivery.attempts[0]!.at);
    expect(pause).toBeGreaterThanOrEqual(60_000);
    expect(pause).toBeLessThan(60_000 + TIMEOUT_MS + SLACK_MS);
  });

  it.each([301, 302, 303, 304, 305, 307, 308])(
    'and redirects with %i is a failure; nobody goes there',
    async (status) => {
      receiver.clear();
      const delivery = await deliverTo({ status, headers: { location: `${receiver.url}there` } });
      expect(delivery).toMatchObject({ status: 'pending', error: 'redirect', answer: { status } });
      expect(receiver.requests.map(({ path }) => path)).toEqual(['/']);
    }
  );

  it('and answers 100 MB delivered, is cut at 20,000 bytes, and memory stays flat', async () => {
    const before = await site.control<{ rss: number }>('memory');
    for (let round = 0; round < 3; round += 1) {
      const delivery = await deliverTo({ status: 200, size: 100 * 1024 * 1024 });
      expect(delivery).toMatchObject({ status: 'sent', answer: { status: 200, truncated: true } });
      expect(Buffer.byteLength(delivery.answer!.body)).toBe(20_000);
    }
    const after = await site.control<{ rss: number }>('memory');
    expect(after.rss - before.rss).toBeLessThan(60 * 1024 * 1024);
  });

  it('and answers a failure of 100 MB is told by its status, cut as well', async () => {
    const delivery = await deliverTo({ status: 502, size: 100 * 1024 * 1024 });
    expect(delivery).toMatchObject({ error: 'http_502', answer: { truncated: true } });
  });

  it('and answers gzip is not inflated, so that a bomb stays small', async () => {
    const bomb = zlib.gzipSync(Buffer.alloc(200 * 1024 * 1024));
    const before = await site.control<{ rss: number }>('memory');
    const delivery = await deliverTo({
      status: 200,
      headers: { 'content-encoding': 'gzip' },
      body: bomb,
    });
    expect(delivery.status).toBe('sent');
    expect(delivery.answer!.body.length).toBeLessThanOrEqual(20_000);
    const after = await site.control<{ rss: number }>('memory');
    expect(after.rss - before.rss).toBeLessThan(60 * 1024 * 1024);
  });

  it('and sends its head a byte at a time runs into the one deadline', async () => {
    const raw = await startRaw((socket) => {
      const text = `HTTP/1.1 200 OK\r\nx-pad: ${'a'.repeat(1000)}\r\n\r\n`;
      let at = 0;
      const timer = setInterval(() => socket.write(text[at++] ?? 'a'), 100);
      socket.once('close', () => clearInterval(timer));
    });
    try {
      expect(await deliver(raw.url)).toMatchObject({ error: 'timeout', answer: null });
    } finally {
      await raw.close();
    }
  });

  it('and speaks no HTTP is a failure with a cause', async () => {
    const raw = await startRaw((socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n'));
    try {
      expect(await deliver(raw.url)).toMatchObject({ error: 'invalid_response', answer: null });
    } finally {
      await raw.close();
    }
  });

  it('and is not there, or has no name, is told apart', async () => {
    const closed = await startRaw(() => {});
    await closed.close();
    expect(await deliver(closed.url)).toMatchObject({ error: 'refused', answer: null });
    await removeWebhooks(site);
    const delivery = await deliver('http://nowhere.invalid/hook');
    expect(delivery).toMatchObject({ error: 'dns', answer: null });
  });

  it('and has a certificate that nobody vouches for is a failure: tls', async () => {
    const server = https.createServer(
      createSelfSigned({ commonName: '127.0.0.1', expires: new Date('2049-01-01') }),
      (_request, response) => response.end()
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      const { port } = server.address() as AddressInfo;
      expect(await deliver(`https://127.0.0.1:${port}/`)).toMatchObject({ error: 'tls' });
    } finally {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    }
  });

  it('shows its cause to the owner who presses Send a test', async () => {
    receiver.respond({ hang: true });
    const { id } = await createWebhook(site, receiver.url);
    const answer = await testWebhook(site, id);
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({ ok: false, response_code: null, error: 'timeout' });
  });

  it('keeps NUL, broken UTF-8 and odd headers out of the log’s way', async () => {
    const delivery = await deliverTo({
      status: 500,
      headers: { 'x-odd': 'caf\u00e9' },
      body: Buffer.from([0x61, 0x00, 0xff, 0xfe, 0x62]),
    });
    expect(delivery.answer!.body).toBe('a\ufffd\ufffd\ufffdb');
  });
});
