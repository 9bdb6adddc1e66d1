import { type ChildProcess, spawn } from 'node:child_process';
import { createAddressGuard } from '../../../server/src/net/guard';
import { classify, HttpClient, openGot, openNode } from '../../../server/src/net/http-client';
import { startReceiver, stopReceivers } from './receivers';

/** A receiver in a process of its own that sends one text after another, as fast as it is taken. */
const FLOOD = `
  const [first, again, size] = JSON.parse(process.argv[1]);
  const block = again.repeat(Math.ceil(size / (again.length || 1)));
  require('node:net').createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      socket.write(first);
      const more = () => { while (block && !socket.destroyed && socket.write(block)); };
      socket.on('drain', more);
      more();
    });
  }).listen(0, '127.0.0.1', function () { console.log(this.address().port); });
`;

const children: ChildProcess[] = [];
const startFlood = (first: string, again: string, size = 65_536): Promise<string> =>
  new Promise((done) => {
    const child = spawn(process.execPath, ['-e', FLOOD, JSON.stringify([first, again, size])]);
    children.push(child);
    child.stdout.once('data', (port) => done(`http://127.0.0.1:${String(port).trim()}/`));
  });

afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await stopReceivers();
});

const HINT = 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n';
const CHUNKED = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';

describe.each([
  ['got', openGot],
  ['node', openNode],
])('a receiver that floods %s', (_library, transport) => {
  it.each<[string, string, string, string | null]>([
    ['informational answers', '', HINT, 'invalid_response'],
    ['bare ones', '', 'HTTP/1.1 102 P\r\n\r\n', 'invalid_response'],
    ['continues', '', 'HTTP/1.1 100 Continue\r\n\r\n', 'invalid_response'],
    ['headers without end', 'HTTP/1.1 200 OK\r\n', 'x-a: b\r\n', 'invalid_response'],
    ['one header without end', 'HTTP/1.1 200 OK\r\nx-a: ', 'b', 'invalid_response'],
    ['chunks of a byte', CHUNKED, '1\r\nx\r\n', null],
    ['an extension of a chunk', `${CHUNKED}1;a=`, 'b', 'invalid_response'],
    ['trailers', `${CHUNKED}1\r\nx\r\n0\r\n`, 'x-a: b\r\n', 'invalid_response'],
  ])('%s ends the attempt long before its deadline', async (_name, first, again, cause) => {
    const url = await startFlood(first, again);
    const other = await startReceiver((_, response) => response.end('ok'));
    const client = new HttpClient({
      guard: createAddressGuard({ isLocalAllowed: () => true }),
      timeoutMs: 20_000,
      transport,
    });
    const post = (to: string) => client.post({ url: to, headers: {}, body: '{}' });
    try {
      await post(other.url); // Loads the client.
      const before = process.cpuUsage();
      const floods = Promise.all(Array.from({ length: 4 }, () => post(url)));
      const served = await post(other.url);
      const outcomes = await floods;
      const { user, system } = process.cpuUsage(before);
      expect(served).toMatchObject({ kind: 'answered', status: 200 });
      for (const outcome of outcomes) {
        expect(classify(outcome).cause).toBe(cause);
        expect(outcome.durationMs).toBeLessThan(10_000);
      }
      // Time of the processor, which a busy machine stretches less: so much each, all in all. Without an
      // end it would be the whole deadline, 20 seconds for all of them.
      expect((user + system) / 1000 / (outcomes.length + 1)).toBeLessThan(300);
    } finally {
      client.close();
    }
  });

  it('may send a few informational answers first', async () => {
    const other = await startFlood(`${HINT.repeat(20)}HTTP/1.1 204 No\r\n\r\n`, '', 0);
    const client = new HttpClient({
      guard: createAddressGuard({ isLocalAllowed: () => true }),
      timeoutMs: 5000,
      transport,
    });
    try {
      expect(await client.post({ url: other, headers: {}, body: '{}' })).toMatchObject({
        status: 204,
      });
    } finally {
      client.close();
    }
  });
});
