import http from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { createAddressGuard } from '../../../server/src/net/guard';
import { classify, HttpClient, openGot, openNode } from '../../../server/src/net/http-client';
import { startReceiver, stopReceivers } from './receivers';

/** A proxy that notes what it is asked for, and connects to nobody. */
const startProxy = async () => {
  const asked: string[] = [];
  const server = http.createServer((request, response) => {
    asked.push(String(request.url));
    response.writeHead(502).end();
  });
  server.on('connect', (request, socket) => {
    asked.push(String(request.url));
    socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { asked, url, close: () => server.close() };
};

// The host has it of its own.
// eslint-disable-next-line @typescript-eslint/no-require-imports -- it brings no types
const { bootstrap } = require('global-agent') as { bootstrap: () => unknown };

/** As the host does with `server.proxy.global`; undone afterwards. */
const before = { http: { ...http }, https: { ...https } };
let proxy: Awaited<ReturnType<typeof startProxy>>;
beforeAll(async () => {
  proxy = await startProxy();
  bootstrap();
  const { GLOBAL_AGENT: settings } = globalThis as unknown as {
    GLOBAL_AGENT: Record<string, string>;
  };
  settings.HTTP_PROXY = proxy.url;
  settings.HTTPS_PROXY = proxy.url;
});
afterAll(async () => {
  for (const [module, { request, get, globalAgent }] of [
    [http, before.http],
    [https, before.https],
  ] as const) {
    Object.assign(module, { request, get, globalAgent });
  }
  proxy.close();
  await stopReceivers();
});

describe('a proxy of the whole process', () => {
  it('takes what others send', async () => {
    const status = await new Promise((resolve) => {
      http.get('http://127.0.0.1:9/others', (response) => {
        response.resume();
        resolve(response.statusCode);
      });
    });
    expect([status, proxy.asked.length]).toEqual([502, 1]);
    proxy.asked.length = 0;
  });

  it.each([
    ['got', openGot],
    ['node', openNode],
  ])('takes no post of %s', async (_library, transport) => {
    const receiver = await startReceiver((_, response) => response.end('ok'));
    const client = new HttpClient({
      guard: createAddressGuard({ isLocalAllowed: () => true }),
      timeoutMs: 5000,
      transport,
    });
    const post = async (url: string) =>
      classify(await client.post({ url, headers: {}, body: '{}' }));
    expect(await post(receiver.url)).toMatchObject({ ok: true, cause: null });
    // It speaks no TLS: what matters is who was asked.
    expect(await post(receiver.url.replace('http:', 'https:'))).toMatchObject({
      ...{ ok: false, cause: 'tls' },
    });
    client.close();
    expect(proxy.asked).toEqual([]);
  });
});
