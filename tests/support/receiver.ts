import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { watchServer } from './leak-check';
import { sleep, waitFor } from './wait';

/** One request as it arrived. */
export interface Received {
  method: string;
  path: string;
  /** Lower-case names; what was sent twice is joined with a comma. */
  headers: Record<string, string>;
  rawHeaders: string[];
  raw: Buffer;
  /** The body as text. */
  body: string;
  /** The parsed body, `undefined` where it is no JSON. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  json: any;
  /** Epoch milliseconds at the end of the request's body. */
  at: number;
}

/**
 * How to answer. Without anything: 200 `ok`.
 * - `delayMs`: waits before the answer
 * - `hang`: never answers; `drip`: sends the head and then a byte every so many milliseconds
 * - `close`: drops the connection, `'before'` an answer or in its `'middle'`
 * - `size`: that many bytes of body; `body`/`headers`/`status` as they say
 */
export interface Script {
  status?: number;
  headers?: Record<string, string>;
  body?: string | Buffer;
  delayMs?: number;
  hang?: boolean;
  drip?: number;
  close?: 'before' | 'middle';
  size?: number;
}

export type Responder = Script | ((request: Received, index: number) => Script | Promise<Script>);

export interface Receiver {
  /** `http://127.0.0.1:<port>/` */
  readonly url: string;
  readonly port: number;
  readonly requests: Received[];
  /** The bodies' events, oldest first: `['contact.created', …]`. */
  events(): string[];
  /** Sets the answer for every request from now on. */
  respond(responder: Responder): void;
  /** The next answers, one each, before `respond`'s holds again. */
  enqueue(...scripts: Script[]): void;
  /** Waits until at least `count` requests (that satisfy `filter`) arrived; resolves with them. */
  waitFor(
    count: number,
    timeout?: number,
    filter?: (item: Received) => boolean
  ): Promise<Received[]>;
  /** Waits for `quiet` milliseconds in which nothing arrives. */
  settle(quiet?: number): Promise<void>;
  clear(): void;
  close(): Promise<void>;
}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

const BLOCK = Buffer.alloc(64 * 1024, 'x');

const writeBlocks = async (response: http.ServerResponse, size: number): Promise<void> => {
  for (let left = size; left > 0 && !response.destroyed; left -= BLOCK.length) {
    const more = response.write(left >= BLOCK.length ? BLOCK : BLOCK.subarray(0, left));
    if (!more) {
      await new Promise<void>((resolve) => {
        const go = () => {
          response.off('drain', go).off('close', go);
          resolve();
        };
        response.once('drain', go).once('close', go);
      });
    }
  }
  response.end();
};

const drip = (response: http.ServerResponse, everyMs: number): void => {
  const timer = setInterval(() => response.write('.'), everyMs);
  response.once('close', () => clearInterval(timer));
};

const answer = async (response: http.ServerResponse, script: Script): Promise<void> => {
  if (script.delayMs) await sleep(script.delayMs);
  if (script.hang) return;
  if (script.close === 'before') {
    response.socket?.destroy();
    return;
  }
  response.writeHead(script.status ?? 200, { 'content-type': 'text/plain', ...script.headers });
  if (script.close === 'middle') {
    response.write('half an ans', () => response.socket?.destroy());
  } else if (script.drip) {
    response.flushHeaders();
    drip(response, script.drip);
  } else if (script.size) {
    await writeBlocks(response, script.size);
  } else {
    response.end(script.body ?? 'ok');
  }
};

/** A loopback HTTP server that keeps what it is sent. Close it in `afterAll`. */
export const startReceiver = async (
  initial: Responder = {},
  { host = '127.0.0.1', port = 0 }: { host?: string; port?: number } = {}
): Promise<Receiver> => {
  let responder = initial;
  const next: Script[] = [];
  const requests: Received[] = [];

  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => {});
    request.on('end', () => {
      const raw = Buffer.concat(chunks);
      const body = raw.toString('utf8');
      const received: Received = {
        method: request.method ?? '',
        path: request.url ?? '',
        headers: Object.fromEntries(
          Object.entries(request.headers).map(([name, value]) => [name, String(value)])
        ),
        rawHeaders: request.rawHeaders,
        raw,
        body,
        json: parse(body),
        at: Date.now(),
      };
      const index = requests.push(received) - 1;
      const scripted = next.shift();
      const decide = async () =>
        scripted ?? (typeof responder === 'function' ? responder(received, index) : responder);
      decide()
        .then((script) => answer(response, script))
        .catch((error: Error) => {
          response.statusCode = 500;
          response.end(`the test's responder threw: ${error.message}`);
        });
    });
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  watchServer(server);
  const bound = (server.address() as AddressInfo).port;

  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}/`,
    port: bound,
    requests,
    events: () => requests.map((item) => item.json?.event),
    respond(value) {
      responder = value;
    },
    enqueue(...scripts) {
      next.push(...scripts);
    },
    waitFor: (count, timeout = 30_000, filter = () => true) =>
      waitFor(
        () => {
          const found = requests.filter(filter);
          return found.length >= count ? found : undefined;
        },
        timeout,
        `${count} requests at the receiver (it has ${requests.length})`
      ),
    async settle(quiet = 500) {
      for (let seen = -1; seen !== requests.length;) {
        seen = requests.length;
        await sleep(quiet);
      }
    },
    clear() {
      requests.length = 0;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};
