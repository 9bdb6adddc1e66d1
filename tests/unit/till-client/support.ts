import fs from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';

export interface Reply {
  status: number;
  /** Objects as JSON, strings as a page of something that is not the service. */
  body?: object | string;
  headers?: Record<string, string>;
}

export interface Received {
  path: string;
  body: string;
  headers: http.IncomingHttpHeaders;
}

/** A service that answers what a test tells it to, and 202 to all else. */
export class FakeService {
  readonly received: Received[] = [];
  readonly replies: Reply[] = [];
  /** Answers what no reply is left for. */
  respond: (request: Received) => Reply = () => ({
    status: 202,
    body: { ok: true, event_id: this.received.length, state: 'pending', duplicate: false },
  });

  private constructor(private readonly server: http.Server) {}

  static async start(): Promise<FakeService> {
    const service = new FakeService(http.createServer());
    service.server.on('request', async (request, response) => {
      let body = '';
      for await (const chunk of request) body += String(chunk);
      const received = { path: request.url ?? '', body, headers: request.headers };
      service.received.push(received);
      const reply = service.replies.shift() ?? service.respond(received);
      const isPage = typeof reply.body === 'string';
      response.writeHead(reply.status, {
        'content-type': isPage ? 'text/html' : 'application/json',
        ...reply.headers,
      });
      response.end(isPage ? reply.body : JSON.stringify(reply.body ?? refusal('x')));
    });
    await new Promise<void>((resolve) => {
      service.server.listen(0, '127.0.0.1', resolve);
    });
    return service;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** What arrived, by the senders' ids. */
  get ids(): string[] {
    return this.received.map(
      ({ body }) => (JSON.parse(body) as { external_id: string }).external_id
    );
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => {
      this.server.close(resolve);
    });
  }
}

export const refusal = (code: string, more: object = {}): object => ({
  ok: false,
  code,
  message: `because ${code}`,
  ...more,
});

export const saleOf = (id: string) => ({
  external_id: id,
  occurred_at: '2026-01-01T00:00:00Z',
  currency: 'GBP',
  total: 1,
  line_items: [{ sku: 'X', quantity: 1 }],
});

export const makeFolder = (): string => fs.mkdtempSync(path.join(os.tmpdir(), 'till-'));
