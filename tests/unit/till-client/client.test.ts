import vectors from '../../../docs/vectors/pos-signatures.json';
import { createTill, sign, TillError, type TillOptions } from '../../../till-client';
import { FakeService, refusal, saleOf } from './support';

describe('the till client', () => {
  let service: FakeService;
  let waits: number[];

  beforeEach(async () => {
    service = await FakeService.start();
    waits = [];
  });
  afterEach(() => service.close());

  const tillWith = (changes: Partial<TillOptions> = {}) =>
    createTill({
      url: `${service.url}/`,
      key: 'pos_live_x',
      secret: 'pos_secret_x',
      random: () => 0.5,
      pause: async (ms: number) => void waits.push(ms),
      ...changes,
    });
  const failure = async (work: Promise<unknown>): Promise<TillError> => {
    const error = await work.catch((thrown: unknown) => thrown);
    if (!(error instanceof TillError)) throw new Error(`no TillError: ${String(error)}`);
    return error;
  };
  const timestamps = () => service.received.map(({ headers }) => headers['x-pos-timestamp']);

  it.each(vectors.vectors.map((vector) => [vector.name, vector] as const))(
    'signs the vector %s',
    (_name, { secret, timestamp, body_base64: bytes, signature }) => {
      expect(sign({ secret, timestamp, body: Buffer.from(bytes, 'base64') })).toBe(signature);
    }
  );

  it.each(['', '  ', undefined])('is not made with the secret %p', (secret) => {
    expect(() => tillWith({ secret })).toThrow('secret');
  });

  it('sends the bytes it signed, to the route of their kind', async () => {
    await tillWith().sale(saleOf('Zoë'));
    await tillWith().refund(Buffer.from('{ "external_id" : "r" }'));
    await tillWith().inventory('{"external_id":"i"}\n');
    expect(service.received.map(({ path }) => path)).toEqual(['/sale', '/refund', '/inventory']);
    expect(service.received[1]?.body).toBe('{ "external_id" : "r" }');
    for (const { body, headers } of service.received) {
      const timestamp = String(headers['x-pos-timestamp']);
      expect(headers['x-pos-key']).toBe('pos_live_x');
      expect(headers['x-pos-signature']).toBe(sign({ secret: 'pos_secret_x', timestamp, body }));
    }
  });

  it('closes a shift with what it believes', async () => {
    const closed = { ok: true, event_id: 9, state: 'differs', duplicate: false, differences: [] };
    service.replies.push({ status: 202, body: { ...closed, missing: ['b'] } });
    const sums = { count: 1, total: 5 };
    const closing = {
      external_id: 'shift-1',
      occurred_at: '2026-03-01T20:00:00Z',
      from: '2026-03-01T08:00:00Z',
      to: '2026-03-01T20:00:00Z',
      totals: [{ currency: 'GBP', sales: sums, refunds: { count: 0, total: 0 } }],
      external_ids: ['a', 'b'],
    };
    expect(await tillWith().closing(closing)).toMatchObject({ status: 202, missing: ['b'] });
    expect(service.received[0]?.path).toBe('/closing');
    expect(JSON.parse(service.received[0]?.body ?? '')).toEqual(closing);
    expect(() => tillWith().batch([{ kind: 'closing' as 'sale', body: closing }])).toThrow(
      TypeError
    );
  });

  it('pings with the key alone', async () => {
    service.replies.push({ status: 200, body: { ok: true, connection: 'Till 1', mode: 'test' } });
    expect(await tillWith().ping()).toMatchObject({ connection: 'Till 1', mode: 'test' });
    expect(service.received[0]?.headers['x-pos-signature']).toBeUndefined();
  });

  it('tries again after 5xx, as late as Retry-After says, with the same bytes signed afresh', async () => {
    let nowMs = 1_772_370_300_000;
    service.replies.push({ status: 503 }, { status: 429, headers: { 'retry-after': '7' } });
    const pause = async (ms: number) => {
      waits.push(ms);
      nowMs += 10_000;
    };
    const answer = await tillWith({ now: () => nowMs, pause }).sale(saleOf('a'));
    expect(answer).toMatchObject({ status: 202, event_id: 3 });
    expect(waits).toEqual([375, 7000]);
    expect(new Set(service.received.map(({ body }) => body)).size).toBe(1);
    expect(timestamps()).toEqual(['1772370300', '1772370310', '1772370320']);
  });

  it('reads a Retry-After that is a date', async () => {
    const now = () => Date.parse('2026-03-01T12:00:00Z');
    service.replies.push({
      status: 503,
      headers: { 'retry-after': 'Sun, 01 Mar 2026 12:00:20 GMT' },
    });
    await tillWith({ now }).sale(saleOf('a'));
    expect(waits).toEqual([20_000]);
  });

  it('gives up instead of holding its caller for an hour', async () => {
    service.replies.push({
      status: 429,
      headers: { 'retry-after': '3600' },
      body: refusal('rate_limited'),
    });
    const error = await failure(tillWith().sale(saleOf('a')));
    expect(error).toMatchObject({ code: 'rate_limited', retryable: true, retryAfterMs: 3_600_000 });
    expect(waits).toEqual([]);
  });

  it('gives up after its tries, waiting longer each time', async () => {
    service.respond = () => ({ status: 500 });
    expect(await failure(tillWith({ tries: 4 }).sale(saleOf('a')))).toMatchObject({ status: 500 });
    expect(waits).toEqual([375, 750, 1500]);
    expect(service.received).toHaveLength(4);
  });

  it.each([
    [400, 'schema_invalid', { field: 'total', schema: 'sale.v1' }],
    [401, 'signature_mismatch', {}],
    [401, 'revoked_key', {}],
    [403, 'insufficient_scope', { required_scope: 'sale:write' }],
    [409, 'stale_count', { stale: [{ sku: 'X', quantity: 1 }] }],
    [413, 'payload_too_large', {}],
    [415, 'unsupported_encoding', {}],
  ])('does not try %i %s again', async (status, code, more) => {
    service.replies.push({ status, body: refusal(code, more) });
    const error = await failure(tillWith().sale(saleOf('a')));
    expect(error).toMatchObject({ status, code, message: `because ${code}`, retryable: false });
    expect(error.body).toMatchObject(more);
    expect(service.received).toHaveLength(1);
  });

  it('takes a duplicate for a success', async () => {
    service.replies.push({
      status: 200,
      body: { ok: true, event_id: 7, state: 'applied', duplicate: true },
    });
    expect(await tillWith().sale(saleOf('a'))).toMatchObject({ event_id: 7, duplicate: true });
  });

  it('signs with the server’s time once it was told that its clock is wrong', async () => {
    const now = () => 1_772_370_300_000;
    const outside = {
      status: 401,
      body: refusal('timestamp_outside_window', { skew_seconds: -1000 }),
    };
    service.replies.push(outside);
    const till = tillWith({ now });
    await till.sale(saleOf('a'));
    await till.sale(saleOf('b'));
    expect(timestamps()).toEqual(['1772370300', '1772371300', '1772371300']);
    service.replies.push(outside, outside);
    expect(await failure(till.sale(saleOf('c')))).toMatchObject({
      code: 'timestamp_outside_window',
    });
    expect(service.received).toHaveLength(5);
  });

  it('corrects its clock once where several requests are told of it', async () => {
    const now = () => 1_772_370_300_000;
    const server = 1_772_371_300;
    service.respond = ({ headers }) => {
      const skew = Number(headers['x-pos-timestamp']) - server;
      if (skew === 0) return { status: 202, body: { ok: true, event_id: 1 } };
      return {
        status: 401,
        body: refusal('timestamp_outside_window', { skew_seconds: skew }),
      };
    };
    const till = tillWith({ now });
    await Promise.all(['a', 'b', 'c'].map((id) => till.sale(saleOf(id))));
    expect(timestamps().slice(3)).toEqual(Array(3).fill(String(server)));
    await till.sale(saleOf('d'));
    expect(service.received).toHaveLength(7);
  });

  it.each([
    ['a page of the shop’s Wi-Fi', { status: 200, body: '<h1>Accept our terms</h1>' }],
    ['JSON of somebody else', { status: 200, body: { status: 'fine' } }],
    ['null', { status: 200, body: 'null' }],
    ['a redirect', { status: 302, headers: { location: 'http://127.0.0.1:9/' }, body: '' }],
  ])('does not take %s for an acceptance', async (_what, reply) => {
    service.replies.push(reply);
    expect(await tillWith().sale(saleOf('a'))).toMatchObject({ status: 202, event_id: 2 });
    service.respond = () => reply;
    expect(await failure(tillWith().sale(saleOf('b')))).toMatchObject({
      retryable: true,
      body: null,
    });
  });

  it('says why a service cannot be reached', async () => {
    const gone = await FakeService.start();
    const { url } = gone;
    await gone.close();
    const error = await failure(tillWith({ url, tries: 2 }).sale(saleOf('a')));
    expect(error).toMatchObject({ status: null, code: 'unreachable', retryable: true });
    expect(error.message).toMatch(/ECONNREFUSED/);
  });

  it('does not wait for an answer for ever', async () => {
    const fetch = ((_url: string, { signal }: RequestInit) =>
      new Promise((_resolve, reject) => {
        signal?.addEventListener('abort', () => reject(signal.reason as Error));
      })) as typeof globalThis.fetch;
    const error = await failure(tillWith({ fetch, timeoutMs: 20, tries: 1 }).sale(saleOf('a')));
    expect(error).toMatchObject({ code: 'unreachable', retryable: true });
  });
});
