import net, { type AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { createAddressGuard } from '../../../server/src/net/guard';
import { HttpClient, type HttpPost, openGot, openNode } from '../../../server/src/net/http-client';
import { describeHttpClient } from './http-client-contract';
import { startReceiver, stopReceivers } from './receivers';

describe('the HTTP client with got', () => describeHttpClient(openGot));

describe('the HTTP client with node', () => describeHttpClient(openNode));

test.each<[string, Omit<HttpPost, 'url'>]>([
  ['text', { headers: { 'Content-Type': 'application/json', 'X-A': 'ü' }, body: '{"ü":"✓"}' }],
  ['bytes', { headers: { 'user-agent': 'Somebody/1', 'x-n': '5' }, body: Buffer.from([0, 255]) }],
  ['nothing', { headers: {}, body: '' }],
])('a receiver gets the same bytes from both, where %s is sent', async (_, post) => {
  let received = '';
  const server = net.createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => (received += chunk.toString('latin1')));
    socket.on('data', () => socket.write('HTTP/1.1 204 No\r\nconnection: close\r\n\r\n'));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  const bytesOf = async (transport: typeof openGot): Promise<string> => {
    received = '';
    const guard = createAddressGuard({ isLocalAllowed: () => true });
    const client = new HttpClient({ guard, timeoutMs: 5000, transport });
    const url = `http://127.0.0.1:${port}/hook?to=%C3%BC&empty=#part`;
    expect(await client.post({ url, ...post })).toMatchObject({ status: 204 });
    client.close();
    return received;
  };
  const bytes = await bytesOf(openNode);
  expect(bytes).toBe(await bytesOf(openGot));
  expect(bytes).toContain(`POST /hook?to=%C3%BC&empty= HTTP/1.1\r\n`);
  expect(bytes).toContain(`\r\ncontent-length: ${Buffer.byteLength(post.body)}\r\n`);
  expect(bytes).toContain(`\r\nHost: 127.0.0.1:${port}\r\nConnection: keep-alive\r\n`);
  server.close();
});

test('the time in which its library is loaded is not the receiver’s', async () => {
  const receiver = await startReceiver((_, response) => response.end('ok'));
  const client = new HttpClient({
    guard: createAddressGuard({ isLocalAllowed: () => true }),
    timeoutMs: 1000,
    transport: async (options) => {
      await pause(1500);
      return openNode(options);
    },
  });
  const { durationMs, ...outcome } = await client.post({
    url: receiver.url,
    headers: {},
    body: '',
  });
  expect(outcome).toMatchObject({ kind: 'answered', status: 200 });
  expect(durationMs).toBeLessThan(1000);
  client.close();
  await stopReceivers();
});
