import http from 'node:http';
import net from 'node:net';
import type { AddressInfo } from 'node:net';
import {
  type BodyLimits,
  type BoundedBody,
  createBodyBudget,
  readBoundedBody,
} from '../../../server/src/http/bounded-body';

const MIB = 1024 * 1024;

describe('a body of somebody unknown', () => {
  let server: http.Server;
  let limits: BodyLimits;
  let results: Promise<BoundedBody>[];
  const sockets: net.Socket[] = [];

  beforeEach(async () => {
    limits = { bytes: MIB, deadlineMs: 60_000, budget: createBodyBudget(4 * MIB) };
    results = [];
    server = http.createServer((request, response) => {
      const result = readBoundedBody(request, limits);
      results.push(result);
      void result.then((body) => {
        response.statusCode = { bytes: 200, too_large: 413, busy: 503, slow: 408, broken: 400 }[
          body.kind
        ];
        response.end(body.kind);
        if (body.kind === 'bytes') body.release();
      });
    });
    server.listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
  });

  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  const open = (head: string): net.Socket => {
    const socket = net.connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.on('error', () => {});
    sockets.push(socket);
    socket.write(`POST / HTTP/1.1\r\nHost: x\r\n${head}\r\n\r\n`);
    return socket;
  };
  const answered = (socket: net.Socket): Promise<string> =>
    new Promise((resolve) => {
      socket.once('data', (data) => resolve(/^HTTP\/1\.1 (\d+)/.exec(String(data))?.[1] ?? ''));
    });
  const until = async (isTrue: () => boolean): Promise<void> => {
    while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 5));
  };

  it('comes as it was sent, and counts for as long as it is kept', async () => {
    const socket = open('Content-Length: 5');
    const answer = answered(socket);
    socket.write('he');
    await until(() => limits.budget!.held === 2);
    socket.write('llo');
    expect(await answer).toBe('200');
    const body = await results[0]!;
    expect(body.kind === 'bytes' && body.bytes.toString()).toBe('hello');
    expect(limits.budget!.held).toBe(0);
  });

  it('that says that it is too long is refused before a byte of it is read', async () => {
    const socket = open(`Content-Length: ${MIB + 1}`);
    expect(await answered(socket)).toBe('413');
  });

  it('that says nothing of its length is refused when it is too long', async () => {
    const socket = open('Transfer-Encoding: chunked');
    const answer = answered(socket);
    socket.write(`${(MIB + 1).toString(16)}\r\n`);
    socket.write(Buffer.alloc(MIB + 1));
    expect(await answer).toBe('413');
    expect(limits.budget!.held).toBe(0);
  });

  it('is read to its end where its sender shall read why it is refused', async () => {
    limits = { bytes: 10, discard: 20 };
    const socket = open('Content-Length: 30');
    let isAnswered = false;
    const answer = answered(socket).then((status) => {
      isAnswered = true;
      return status;
    });
    socket.write('x'.repeat(25));
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(isAnswered).toBe(false);
    socket.write('x'.repeat(5));
    expect(await answer).toBe('413');
  });

  it('that ends one byte past the limit is too long, too', async () => {
    limits = { bytes: 10, discard: 20 };
    const socket = open('Content-Length: 11');
    socket.write('x'.repeat(11));
    expect(await answered(socket)).toBe('413');
  });

  it('that goes on past that has the connection closed on it', async () => {
    limits = { bytes: 10, discard: 20 };
    const socket = open('Content-Length: 1000');
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.write('x'.repeat(31));
    await closed;
    expect(await results[0]).toEqual({ kind: 'too_large' });
  });

  it('that does not end in time is let go', async () => {
    limits = { ...limits, deadlineMs: 50 };
    const socket = open('Content-Length: 1000');
    const answer = answered(socket);
    socket.write('unfinished');
    expect(await answer).toBe('408');
    expect(limits.budget!.held).toBe(0);
  });

  it('whose sender goes away is let go', async () => {
    const socket = open('Content-Length: 1000');
    socket.write('unfinished');
    await until(() => limits.budget!.held > 0);
    socket.destroy();
    await until(() => results.length === 1);
    expect(await results[0]).toEqual({ kind: 'broken' });
    expect(limits.budget!.held).toBe(0);
  });

  it('is refused where the others leave no room, and all of them hold no more than that', async () => {
    const answers: string[] = [];
    let most = 0;
    const unfinished = Array.from({ length: 20 }, () => {
      const socket = open(`Content-Length: ${MIB}`);
      void answered(socket).then((status) => answers.push(status));
      socket.write(Buffer.alloc(MIB - 1));
      return socket;
    });
    await until(() => {
      most = Math.max(most, limits.budget!.held);
      return answers.length >= 16;
    });
    expect(most).toBeLessThanOrEqual(4 * MIB + 64 * 1024);
    expect(new Set(answers)).toEqual(new Set(['503']));
    for (const socket of unfinished) socket.destroy();
    await until(() => limits.budget!.held === 0);
    const socket = open('Content-Length: 2');
    const answer = answered(socket);
    socket.write('ok');
    expect(await answer).toBe('200');
  });
});
