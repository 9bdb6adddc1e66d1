import http from 'node:http';
import https from 'node:https';
import { gzipSync } from 'node:zlib';
import { parseCidrList } from '../../../server/src/net/address';
import { createAddressGuard, type AddressGuardOptions } from '../../../server/src/net/guard';
import {
  type AttemptOutcome,
  classify,
  HttpClient,
  type HttpPost,
  type OpenTransport,
} from '../../../server/src/net/http-client';
import { findClosedPort, startRawReceiver, startReceiver, stopReceivers } from './receivers';
import { createSelfSigned } from './self-signed';

const LOOPBACK = [{ address: '127.0.0.1', family: 4 }];
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

/** What every library that posts has to keep, behind the one HTTP client. */
export function describeHttpClient(transport: OpenTransport): void {
  const clients: HttpClient[] = [];
  function clientFor(
    options: Partial<AddressGuardOptions> & { timeoutMs?: number } = {}
  ): HttpClient {
    const { timeoutMs = 5000, ...guard } = options;
    const client = new HttpClient({
      guard: createAddressGuard({
        isLocalAllowed: () => true,
        resolve: async () => LOOPBACK,
        ...guard,
      }),
      timeoutMs,
      transport,
    });
    clients.push(client);
    return client;
  }

  const postTo = (url: string, more: Partial<HttpPost> = {}): HttpPost => ({
    url,
    headers: { 'Content-Type': 'application/json' },
    body: '{"event":"ping"}',
    ...more,
  });

  const causeOf = (outcome: AttemptOutcome) => classify(outcome).cause;

  afterEach(async () => {
    for (const client of clients.splice(0)) client.close();
    await stopReceivers();
  });

  describe('an answer', () => {
    test('brings status, headers and body; the receiver gets our bytes and headers', async () => {
      const receiver = await startReceiver((_, response) => {
        response.writeHead(202, { 'X-Trace': 'abc', 'Set-Cookie': ['a=1', 'b=2'] }).end('stored ✓');
      });
      const body = '{"ü": "\\u0000",  "n":1.0}';
      const outcome = await clientFor().post(
        postTo(receiver.url, { body, headers: { 'X-Service-Event': 'ping', 'X-N': 5 as never } })
      );
      expect(outcome).toMatchObject({
        kind: 'answered',
        status: 202,
        body: 'stored ✓',
        truncated: false,
        headers: { 'x-trace': 'abc', 'set-cookie': 'a=1, b=2' },
      });
      expect(outcome.durationMs).toBeGreaterThanOrEqual(0);
      expect(classify(outcome)).toEqual({ ok: true, cause: null });
      const [request] = receiver.requests;
      expect(request.body).toBe(body);
      expect(request.headers).toMatchObject({
        'x-service-event': 'ping',
        'x-n': '5',
        'content-length': String(Buffer.byteLength(body)),
      });
      expect(request.headers).not.toHaveProperty('accept-encoding');
      expect(request.headers).not.toHaveProperty('cookie');
    });

    test.each([
      [200, null],
      [204, null],
      [299, null],
      [300, 'redirect'],
      [400, 'http_400'],
      [404, 'http_404'],
      [410, 'http_410'],
      [500, 'http_500'],
      [503, 'http_503'],
    ])('with status %i is classified %s', async (status, cause) => {
      const receiver = await startReceiver((_, response) => response.writeHead(status).end());
      const outcome = await clientFor().post(postTo(receiver.url));
      expect(outcome).toMatchObject({ kind: 'answered', status });
      expect(classify(outcome)).toMatchObject({ ok: cause === null, cause });
    });

    test.each([301, 302, 303, 307, 308])('with redirect %i is not followed', async (status) => {
      const target = await startReceiver((_, response) => response.end());
      const receiver = await startReceiver((_, response) =>
        response.writeHead(status, { Location: target.url }).end()
      );
      const outcome = await clientFor().post(postTo(receiver.url));
      expect(outcome).toMatchObject({
        kind: 'answered',
        status,
        headers: { location: target.url },
      });
      expect(causeOf(outcome)).toBe('redirect');
      expect(target.connections()).toBe(0);
    });

    test('of 100 MB is read to 20,000 bytes and cut off; a 2xx stays a success', async () => {
      const chunk = Buffer.alloc(64 * 1024, 'x');
      const receiver = await startReceiver((_, response) => {
        response.writeHead(200, { 'Content-Length': 100 * 1024 * 1024 });
        const write = () => {
          while (!response.destroyed && response.write(chunk));
        };
        response.on('drain', write);
        write();
      });
      const client = clientFor();
      for (let round = 0; round < 5; round += 1) {
        const outcome = await client.post(postTo(receiver.url));
        expect(outcome).toMatchObject({
          kind: 'answered',
          truncated: true,
          body: 'x'.repeat(20_000),
        });
        expect(classify(outcome).ok).toBe(true);
      }
      // What the sockets' buffers held, not what the receiver had to say.
      expect(receiver.bytesSent()).toBeLessThan(5 * 10 * 1024 * 1024);
    });

    test('of exactly 20,000 bytes is whole; a cut leaves no half character', async () => {
      const answers = ['y'.repeat(20_000), `y${'é'.repeat(10_000)}`];
      const receiver = await startReceiver((_, response) => response.end(answers.shift()));
      const client = clientFor();
      expect(await client.post(postTo(receiver.url))).toMatchObject({ truncated: false });
      const cut = await client.post(postTo(receiver.url));
      expect(cut).toMatchObject({ truncated: true, body: `y${'é'.repeat(9_999)}` });
    });

    test('that is gzip is not inflated', async () => {
      const bomb = gzipSync(Buffer.alloc(10 * 1024 * 1024));
      const receiver = await startReceiver((_, response) =>
        response.writeHead(200, { 'Content-Encoding': 'gzip' }).end(bomb)
      );
      const outcome = await clientFor().post(postTo(receiver.url));
      expect(outcome).toMatchObject({ kind: 'answered', status: 200 });
      expect(outcome.body?.length).toBeLessThanOrEqual(20_000);
      expect(outcome.body?.slice(0, 1)).toBe('\x1f');
    });

    test('with NUL, broken UTF-8 and many long headers can be stored', async () => {
      const receiver = await startReceiver((_, response) => {
        for (let index = 0; index < 200; index += 1) response.setHeader(`x-h${index}`, 'v');
        response.setHeader('x-h0', 'w'.repeat(5000));
        response.end(Buffer.from([0x61, 0x00, 0xff, 0x62]));
      });
      const outcome = await clientFor().post(postTo(receiver.url));
      expect(outcome.body).toBe('a\ufffd\ufffdb');
      expect(outcome.headers?.['x-h0']).toHaveLength(1000);
      expect(Object.keys(outcome.headers ?? {}).length).toBeLessThanOrEqual(64);
    });
  });

  describe('a receiver that misbehaves', () => {
    test('by hanging is a timeout', async () => {
      const receiver = await startReceiver(() => undefined);
      const outcome = await clientFor({ timeoutMs: 150 }).post(postTo(receiver.url));
      expect(outcome).toMatchObject({ kind: 'failed', cause: 'timeout' });
      expect(outcome).not.toHaveProperty('status');
      expect(outcome.durationMs).toBeLessThan(4500);
      expect(await receiver.isIdle()).toBe(true);
    });

    test('by dripping is a timeout, with what had come', async () => {
      const receiver = await startReceiver((_, response) => {
        response.writeHead(200);
        const timer = setInterval(() => response.write('.'), 20);
        response.on('close', () => clearInterval(timer));
      });
      const outcome = await clientFor({ timeoutMs: 400 }).post(postTo(receiver.url));
      expect(outcome).toMatchObject({ kind: 'failed', cause: 'timeout', status: 200 });
      expect(outcome.body).toMatch(/^\.{2,}$/);
      expect(await receiver.isIdle()).toBe(true);
      expect(outcome.durationMs).toBeLessThan(4500);
    });

    test.each([
      ['before its answer', ''],
      ['in the head of its answer', 'HTTP/1.1 200 OK\r\ncontent-le'],
      ['in an answer of known length', 'HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhalf'],
      ['in a chunked answer', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n'],
      [
        'in a chunked answer after which it said it would close',
        'HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n',
      ],
    ])('by closing %s is a failure, even with 200, and is not asked again', async (_, start) => {
      const receiver = await startRawReceiver((socket) => {
        socket.write(start, () => setTimeout(() => socket.destroy(), 20));
      });
      const outcome = await clientFor().post(postTo(receiver.url));
      expect(outcome).toMatchObject({ kind: 'failed', cause: 'closed' });
      expect(classify(outcome)).toMatchObject({ ok: false, cause: 'closed' });
      expect(outcome.body).toBe(start.includes('half') ? 'half' : undefined);
      expect(receiver.connections()).toBe(1);
    });

    test.each([
      ['noise', 'hello there\r\n\r\n'],
      ['a head of 100 KB', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(100_000)}\r\n\r\n`],
      ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok'],
    ])('by answering %s is an invalid response', async (_, answer) => {
      const receiver = await startRawReceiver((socket) => socket.write(answer));
      const outcome = await clientFor().post(postTo(receiver.url));
      expect(outcome).toMatchObject({ kind: 'failed', cause: 'invalid_response' });
    });

    test('by switching protocols is a failure at once', async () => {
      const receiver = await startRawReceiver((socket) =>
        socket.write(
          'HTTP/1.1 101 Switching Protocols\r\nupgrade: ws\r\nconnection: upgrade\r\n\r\n'
        )
      );
      const outcome = await clientFor().post(postTo(receiver.url));
      expect(outcome).toMatchObject({ kind: 'failed', cause: 'invalid_response' });
      await expect(receiver.isIdle()).resolves.toBe(true);
    });

    test('by answering before it has read the request is taken at its word', async () => {
      const receiver = await startRawReceiver((socket, _, chunk) => {
        if (chunk === 1) socket.write('HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n');
      });
      const outcome = await clientFor().post(
        postTo(receiver.url, { body: Buffer.alloc(5_000_000) })
      );
      expect(causeOf(outcome)).toBe('http_413');
    });
  });

  describe('no connection', () => {
    test('is refused where nothing listens', async () => {
      const url = `http://127.0.0.1:${await findClosedPort()}/`;
      const outcome = await clientFor().post(postTo(url));
      expect(outcome).toMatchObject({ kind: 'failed', cause: 'refused' });
      // The driver's text names address and port.
      expect(JSON.stringify(outcome)).not.toContain('127.0.0.1');
    });

    test('is dns where the name does not resolve', async () => {
      const resolve = () => Promise.reject(new Error('getaddrinfo ENOTFOUND'));
      for (const isLocalAllowed of [() => true, () => false]) {
        const client = clientFor({ resolve, isLocalAllowed });
        const outcome = await client.post(postTo('http://hook.invalid/'));
        expect(outcome).toMatchObject({ kind: 'failed', cause: 'dns' });
      }
    });

    test.each([
      ['self-signed', new Date('2049-01-01')],
      ['expired and self-signed', new Date('2021-01-01')],
    ])('is tls where the certificate is %s', async (_, expires) => {
      const tls = createSelfSigned({ commonName: 'localhost', expires });
      const receiver = await startReceiver((__, response) => response.end(), tls);
      const outcome = await clientFor().post(postTo(receiver.url));
      expect(outcome).toMatchObject({ kind: 'failed', cause: 'tls' });
      expect(receiver.requests).toHaveLength(0);
    });

    test('is tls where the whole process is told to take any certificate', async () => {
      // Jest gives tests a copy of the environment; Node looks into the process's own.
      const { env } = http.get.constructor('return process')() as NodeJS.Process;
      const tls = createSelfSigned({ commonName: 'localhost', expires: new Date('2049-01-01') });
      const receiver = await startReceiver((__, response) => response.end(), tls);
      env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
      try {
        const taken = await new Promise((done) => {
          https.get(receiver.url, (response) => done(response.statusCode)).once('error', done);
        });
        expect(taken).toBe(200);
        expect(await clientFor().post(postTo(receiver.url))).toMatchObject({ cause: 'tls' });
      } finally {
        delete env.NODE_TLS_REJECT_UNAUTHORIZED;
      }
      expect(receiver.requests).toHaveLength(1);
    });

    test('is tls where the receiver does not speak it, or hangs up in the handshake', async () => {
      const plain = await startReceiver((_, response) => response.end());
      const rude = await startRawReceiver((socket) => socket.destroy());
      for (const { port } of [plain, rude]) {
        const outcome = await clientFor().post(postTo(`https://127.0.0.1:${port}/`));
        expect(outcome).toMatchObject({ kind: 'failed', cause: 'tls' });
      }
    });
  });

  describe('the deadline', () => {
    const never = () => new Promise<never>(() => undefined);

    test.each([
      ['the policy hook', { isLocalAllowed: never }, 'http'],
      ['the name lookup', { resolve: never }, 'http'],
      ['the TLS handshake', {}, 'https'],
      ['the answer', {}, 'http'],
    ] as const)('covers %s', async (_, guard, scheme) => {
      const receiver = await startRawReceiver(() => undefined);
      const client = clientFor({ timeoutMs: 150, ...guard });
      const outcome = await client.post(postTo(`${scheme}://hook.example:${receiver.port}/`));
      expect(outcome).toMatchObject({ kind: 'failed', cause: 'timeout' });
      expect(outcome.durationMs).toBeGreaterThanOrEqual(140);
      expect(outcome.durationMs).toBeLessThan(4500);
    });

    test('is one for all phases together', async () => {
      const receiver = await startReceiver((_, response) => {
        setTimeout(() => response.write('a'), 200);
        setTimeout(() => response.end('b'), 600);
      });
      const resolve = () =>
        new Promise<typeof LOOPBACK>((done) => setTimeout(() => done(LOOPBACK), 200));
      const url = `http://hook.example:${receiver.port}/`;
      const outcome = await clientFor({ resolve, timeoutMs: 600 }).post(postTo(url));
      expect(outcome).toMatchObject({ kind: 'failed', cause: 'timeout', body: 'a' });
    });

    test('covers the second try on a fresh connection', async () => {
      const receiver = await startRawReceiver((socket, connection, chunk) => {
        if (connection === 1 && chunk === 1) socket.write(OK);
        else if (connection === 1) setTimeout(() => socket.destroy(), 100);
      });
      const client = clientFor({ timeoutMs: 250 });
      expect(await client.post(postTo(receiver.url))).toMatchObject({ kind: 'answered' });
      const outcome = await client.post(postTo(receiver.url));
      expect(outcome).toMatchObject({ kind: 'failed', cause: 'timeout' });
      expect(outcome.durationMs).toBeLessThan(4500);
      expect(receiver.connections()).toBe(2);
    });
  });

  describe('connections', () => {
    test('that the receiver closes after each answer are made anew', async () => {
      const receiver = await startReceiver((_, response) =>
        response.setHeader('connection', 'close').end('ok')
      );
      const client = clientFor();
      for (let round = 0; round < 3; round += 1) {
        expect(await client.post(postTo(receiver.url))).toMatchObject({ status: 200, body: 'ok' });
      }
      expect(receiver.connections()).toBe(3);
    });

    test('that are still being made are given up at the deadline and by close', async () => {
      const receiver = await startRawReceiver(() => undefined);
      const url = `https://127.0.0.1:${receiver.port}/`;
      const hurried = clientFor({ timeoutMs: 150 });
      expect(await hurried.post(postTo(url))).toMatchObject({ cause: 'timeout' });
      expect(await receiver.isIdle()).toBe(true);
      const patient = clientFor();
      const underWay = patient.post(postTo(url));
      while (receiver.connections() < 2) await new Promise((done) => setTimeout(done, 5));
      patient.close();
      expect(await underWay).toMatchObject({ cause: 'aborted' });
      expect(await receiver.isIdle()).toBe(true);
    });

    test('are kept alive and used again', async () => {
      const receiver = await startReceiver((_, response) => response.end('ok'));
      const client = clientFor();
      for (let round = 0; round < 10; round += 1) await client.post(postTo(receiver.url));
      expect(receiver.requests).toHaveLength(10);
      expect(receiver.connections()).toBe(1);
    });

    test('that the receiver closed while idle do not fail a post', async () => {
      const receiver = await startRawReceiver((socket, connection, chunk) => {
        if (connection === 1 && chunk > 1) socket.destroy();
        else socket.write(OK);
      });
      const client = clientFor();
      expect(await client.post(postTo(receiver.url))).toMatchObject({ status: 200 });
      expect(await client.post(postTo(receiver.url))).toMatchObject({ status: 200, body: 'ok' });
      expect(receiver.connections()).toBe(2);
    });

    test('are tried afresh only once', async () => {
      let refuse = false;
      const receiver = await startRawReceiver((socket) => {
        if (refuse) socket.destroy();
        else socket.write(OK);
      });
      const client = clientFor();
      await client.post(postTo(receiver.url));
      refuse = true;
      expect(await client.post(postTo(receiver.url))).toMatchObject({ cause: 'closed' });
      expect(receiver.connections()).toBe(2);
    });

    test('are ended by close, and what is under way is aborted', async () => {
      const receiver = await startReceiver(() => undefined);
      const client = clientFor();
      const underWay = client.post(postTo(receiver.url));
      while (receiver.requests.length === 0) await new Promise((done) => setTimeout(done, 5));
      client.close();
      expect(await underWay).toMatchObject({ kind: 'failed', cause: 'aborted' });
      expect(await client.post(postTo(receiver.url))).toMatchObject({ cause: 'aborted' });
      expect(receiver.connections()).toBe(1);
    });
  });

  describe('a refused address', () => {
    const isLocalAllowed = () => false;

    test('is never connected to: literal, name, mix, and a name that turned bad', async () => {
      const receiver = await startReceiver((_, response) => response.end());
      let addresses = [{ address: '93.184.216.34', family: 4 }];
      const guard = createAddressGuard({ isLocalAllowed, resolve: async () => addresses });
      const name = `http://hook.example:${receiver.port}/`;
      expect(await guard.checkUrl(name)).toEqual({ verdict: 'allowed' });

      const client = new HttpClient({ guard, timeoutMs: 2000, transport });
      clients.push(client);
      const blocked = async (url: string) =>
        expect(await client.post(postTo(url))).toMatchObject({ cause: 'blocked_address' });
      addresses = [...LOOPBACK];
      await blocked(name);
      addresses = [{ address: '93.184.216.34', family: 4 }, ...LOOPBACK];
      await blocked(name);
      await blocked(receiver.url);
      await blocked(`http://2130706433:${receiver.port}/`);
      await blocked(`http://[::ffff:127.0.0.1]:${receiver.port}/`);
      expect(receiver.connections()).toBe(0);
    });

    test('does not tell an open port from a closed one, nor a literal from a name', async () => {
      const receiver = await startReceiver((_, response) => response.end());
      const ports = [receiver.port, await findClosedPort()];
      const client = clientFor({ isLocalAllowed });
      const seen = new Set<string>();
      for (const port of ports) {
        for (const host of ['127.0.0.1', 'inside.example']) {
          const outcome = await client.post(postTo(`http://${host}:${port}/`));
          seen.add(JSON.stringify({ ...outcome, durationMs: 0 }));
        }
      }
      expect([...seen]).toHaveLength(1);
    });

    test('is refused as soon as the policy says so, kept-alive connections notwithstanding', async () => {
      const receiver = await startReceiver((_, response) => response.end());
      let local = true;
      const client = clientFor({ isLocalAllowed: () => local });
      const request = postTo(`http://inside.example:${receiver.port}/`);
      expect(await client.post(request)).toMatchObject({ kind: 'answered' });
      local = false;
      expect(await client.post(request)).toMatchObject({ cause: 'blocked_address' });
      local = true;
      expect(await client.post(request)).toMatchObject({ kind: 'answered' });
      expect(receiver.requests).toHaveLength(2);
    });

    test('passes where its range is on the list', async () => {
      const receiver = await startReceiver((_, response) => response.end('in'));
      const client = clientFor({ isLocalAllowed, allowedCidrs: parseCidrList(['127.0.0.1/32']) });
      expect(await client.post(postTo(receiver.url))).toMatchObject({ body: 'in' });
      const name = `http://inside.example:${receiver.port}/`;
      expect(await client.post(postTo(name))).toMatchObject({ body: 'in' });
    });
  });

  describe('a request that cannot be sent', () => {
    test.each<[string, unknown]>([
      ['a line break in a value', { 'x-a': 'a\r\nx-b: c' }],
      ['a character beyond Latin-1', { 'x-a': 'snow ☃' }],
      ['a NUL', { 'x-a': 'a\0' }],
      ['a space in a name', { 'x a': 'b' }],
      ['an empty name', { '': 'b' }],
      ['a value that is an object', { 'x-a': {} }],
      ['a value that is a symbol', { 'x-a': Symbol('s') }],
      ['a list for a value', { 'x-a': ['b'] }],
      ['the prototype as a name', JSON.parse('{"__proto__": "x"}')],
      ['no headers at all', undefined],
      ['headers that are text', 'x-a: b'],
    ])('because of %s is an outcome, not a throw', async (_, headers) => {
      const receiver = await startReceiver((__, response) => response.end());
      const outcome = await clientFor().post(postTo(receiver.url, { headers: headers as never }));
      expect(outcome).toMatchObject({ kind: 'failed', cause: 'invalid_request' });
      expect(receiver.connections()).toBe(0);
    });

    test.each<[string, Partial<HttpPost>]>([
      ['another scheme', { url: 'file:///etc/passwd' }],
      ['userinfo', { url: 'http://user:pass@127.0.0.1/' }],
      ['no URL', { url: undefined }],
      [
        'a URL that the client takes for a socket file',
        { url: 'http://unix:/var/run/docker.sock' },
      ],
      ['no body', { body: undefined }],
      ['a body that is an object', { body: {} as never }],
    ])('because of %s is an outcome too', async (_, more) => {
      const outcome = await clientFor({ timeoutMs: 2000 }).post({
        ...postTo('http://127.0.0.1/'),
        ...more,
      });
      expect(outcome).toMatchObject({ kind: 'failed', cause: 'invalid_request' });
    });

    test('framing and routing headers of others are left out, null ones too', async () => {
      const receiver = await startReceiver((_, response) => response.end());
      const headers = {
        Host: 'admin.internal',
        'Content-Length': '3',
        'Transfer-Encoding': 'chunked',
        Expect: '100-continue',
        'X-Null': null,
        'X-Kept': 'yes',
      };
      const outcome = await clientFor().post(postTo(receiver.url, { headers: headers as never }));
      expect(outcome).toMatchObject({ kind: 'answered', status: 200 });
      const [request] = receiver.requests;
      expect(request.headers.host).toBe(`127.0.0.1:${receiver.port}`);
      expect(request.body).toBe('{"event":"ping"}');
      expect(request.headers['x-kept']).toBe('yes');
      for (const name of ['transfer-encoding', 'expect', 'x-null']) {
        expect(request.headers).not.toHaveProperty(name);
      }
    });
  });

  test('hundreds of posts at once leave no listener warning and no lost outcome', async () => {
    const warnings: Error[] = [];
    const note = (warning: Error) => warnings.push(warning);
    process.on('warning', note);
    const receiver = await startReceiver((_, response) => response.end('ok'));
    // Far above what it takes: nothing here is about time, and the machine may be busy.
    const client = clientFor({ timeoutMs: 120_000 });
    const outcomes = await Promise.all(
      Array.from({ length: 500 }, () => client.post(postTo(receiver.url)))
    );
    await new Promise((done) => setImmediate(done));
    process.off('warning', note);
    expect(outcomes.every((outcome) => classify(outcome).ok)).toBe(true);
    expect(receiver.connections()).toBeLessThanOrEqual(64);
    expect(warnings).toEqual([]);
  }, 150_000);
}
