import fs from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import vectors from '../../../docs/vectors/pos-signatures.json';
import {
  createOfflineTill,
  createTill,
  sign,
  type Settlement,
  TillError,
} from '../../../till-client';

interface Reply {
  status: number;
  body?: object;
  headers?: Record<string, string>;
}

describe('the till client', () => {
  let server: http.Server;
  let url: string;
  let folder: string;
  let received: { path: string; body: string; headers: http.IncomingHttpHeaders }[];
  let replies: Reply[];

  beforeEach(async () => {
    received = [];
    replies = [];
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'till-'));
    server = http.createServer(async (request, response) => {
      let body = '';
      for await (const chunk of request) body += String(chunk);
      received.push({ path: request.url ?? '', body, headers: request.headers });
      const reply = replies.shift() ?? {
        status: 202,
        body: { ok: true, event_id: received.length, duplicate: false },
      };
      response.writeHead(reply.status, { 'content-type': 'application/json', ...reply.headers });
      response.end(JSON.stringify(reply.body ?? { ok: false, code: 'x', message: 'no' }));
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  });
  afterEach(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => {
      server.close(resolve);
    });
    fs.rmSync(folder, { recursive: true, force: true });
  });

  const waits: number[] = [];
  const options = () => ({
    url,
    key: 'pos_live_x',
    secret: 'pos_secret_x',
    random: () => 0.5,
    pause: async (ms: number) => void waits.push(ms),
  });
  const sale = {
    external_id: 'a',
    occurred_at: '2026-01-01T00:00:00Z',
    currency: 'GBP',
    total: 1,
    line_items: [{ sku: 'X', quantity: 1 }],
  };

  it.each(vectors.vectors.map((vector) => [vector.name, vector] as const))(
    'signs the vector %s',
    (_name, vector) => {
      const { secret, timestamp } = vector;
      const body = Buffer.from(vector.body_base64, 'base64');
      expect(sign({ secret, timestamp, body })).toBe(vector.signature);
    }
  );

  it('sends the bytes it signed', async () => {
    await createTill(options()).sale(sale);
    const [request] = received;
    const { 'x-pos-timestamp': timestamp = '', 'x-pos-signature': signature } =
      request?.headers ?? {};
    expect(request?.path).toBe('/sale');
    expect(signature).toBe(
      sign({ secret: 'pos_secret_x', timestamp: String(timestamp), body: request?.body ?? '' })
    );
  });

  it('tries again after 503 and 429, as late as Retry-After says, with the same bytes', async () => {
    waits.length = 0;
    replies = [{ status: 503 }, { status: 429, headers: { 'retry-after': '7' } }];
    const answer = await createTill(options()).sale(sale);
    expect(answer.event_id).toBe(3);
    expect(waits).toEqual([375, 7000]);
    expect(new Set(received.map(({ body }) => body)).size).toBe(1);
  });

  it('does not try a refusal again, and corrects a wrong clock once', async () => {
    replies = [
      { status: 400, body: { ok: false, code: 'schema_invalid', message: 'total must be …' } },
    ];
    const refusal = await createTill(options())
      .sale(sale)
      .catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(TillError);
    expect(refusal).toMatchObject({ status: 400, code: 'schema_invalid', retryable: false });
    expect(received).toHaveLength(1);
    replies = [
      {
        status: 401,
        body: { ok: false, code: 'timestamp_outside_window', message: '', skew_seconds: -1000 },
      },
    ];
    await createTill(options()).sale(sale);
    const [wrong, right] = received
      .slice(1)
      .map(({ headers }) => Number(headers['x-pos-timestamp']));
    expect((right ?? 0) - (wrong ?? 0)).toBeGreaterThanOrEqual(1000);
  });

  it('keeps records on disk in order over an outage and a restart, and puts unfit ones aside', async () => {
    const settled: Settlement[] = [];
    const first = createOfflineTill({ ...options(), url: 'http://127.0.0.1:9/', folder });
    await Promise.all([1, 2, 3].map((id) => first.sale({ ...sale, external_id: String(id) })));
    expect(await first.pending()).toHaveLength(3);
    await first.stop();
    replies = [{ status: 202, body: { ok: true } }, { status: 400 }, { status: 409 }];
    const second = createOfflineTill({
      ...options(),
      folder,
      onSettled: (one) => settled.push(one),
    });
    second.run();
    await second.sale({ ...sale, external_id: '4' });
    while (settled.length < 4) await new Promise((resolve) => setTimeout(resolve, 5));
    await second.stop();
    expect(
      received.map(({ body }) => (JSON.parse(body) as { external_id: string }).external_id)
    ).toEqual(['1', '2', '3', '4']);
    expect(settled.map(({ outcome }) => outcome)).toEqual([
      'accepted',
      'refused',
      'stale',
      'accepted',
    ]);
    expect(await second.pending()).toEqual([]);
    expect(fs.readdirSync(path.join(folder, 'refused'))).toHaveLength(1);
  });
});
