import { expectAnswer, expectRefusal, expectThat, some } from './service.mjs';
import { saleOf } from './records.mjs';

const WRONG = 'pos_secret_of_somebody_else';
const OUTSIDE = 'timestamp_outside_window';

const skewOf = (seconds) => (skew) => Number.isInteger(skew) && Math.abs(skew - seconds) <= 30;

/** Ping, schemas, and who may send: `[what, check]`. */
export const AUTHENTICATION = [
  [
    'ping: answers with the key alone',
    async (service) => {
      const { server_time: time } = expectAnswer(await service.ping(), 200, {
        ok: true,
        connection: some.text,
        mode: 'test',
        schema: 'v1',
        server_time: some.integer,
      });
      expectThat(Math.abs(time - service.now()) <= 30, 'tells a server_time that stands still');
    },
  ],
  [
    'ping: a key nobody has is 401 unknown_key',
    async (service) => expectRefusal(await service.ping('pos_test_nobody'), 401, 'unknown_key'),
  ],
  ...['sale', 'refund', 'inventory', 'batch'].map((kind) => [
    `schema: /schema/${kind} is published to everybody`,
    async (service) => {
      const { properties } = expectAnswer(await service.get(`/schema/${kind}`), 200);
      const field = kind === 'batch' ? 'records' : 'external_id';
      expectThat(properties?.[field] !== undefined, `names no ${field} in its properties`);
    },
  ]),
  [
    'time: 400 seconds late is 401 timestamp_outside_window with skew_seconds',
    async (service) => {
      const timestamp = service.now() - 400;
      const answer = await service.post('/sale', saleOf(service), { timestamp });
      expectRefusal(answer, 401, OUTSIDE, { skew_seconds: skewOf(-400) });
    },
  ],
  [
    'time: 400 seconds early is the same',
    async (service) => {
      const timestamp = service.now() + 400;
      const answer = await service.post('/sale', saleOf(service), { timestamp });
      expectRefusal(answer, 401, OUTSIDE, { skew_seconds: skewOf(400) });
    },
  ],
  [
    'time: 280 seconds late is accepted',
    async (service) => {
      const timestamp = service.now() - 280;
      expectAnswer(await service.post('/sale', saleOf(service), { timestamp }), 202);
    },
  ],
  [
    'time: no timestamp is 401',
    async (service) => {
      const headers = { 'X-POS-Timestamp': undefined };
      expectRefusal(await service.post('/sale', saleOf(service), { headers }), 401, OUTSIDE);
    },
  ],
  [
    'order: time is judged before the signature',
    async (service) => {
      const changes = { timestamp: service.now() - 400, secret: WRONG };
      expectRefusal(await service.post('/sale', saleOf(service), changes), 401, OUTSIDE);
    },
  ],
  [
    'order: the key is judged before the time',
    async (service) => {
      const changes = { timestamp: 1, key: 'pos_test_nobody' };
      expectRefusal(await service.post('/sale', saleOf(service), changes), 401, 'unknown_key');
    },
  ],
  [
    'order: the signature is judged before the body',
    async (service) =>
      expectRefusal(
        await service.post('/sale', '{nonsense', { secret: WRONG }),
        401,
        'signature_mismatch'
      ),
  ],
  [
    'signature: one by another secret is 401 signature_mismatch',
    async (service) =>
      expectRefusal(
        await service.post('/sale', saleOf(service), { secret: WRONG }),
        401,
        'signature_mismatch'
      ),
  ],
  [
    'signature: it covers the exact bytes',
    async (service) => {
      const sale = saleOf(service);
      const changes = { signedBody: JSON.stringify(sale) };
      const answer = await service.post('/sale', JSON.stringify(sale, null, 1), changes);
      expectRefusal(answer, 401, 'signature_mismatch');
    },
  ],
  [
    'signature: none is 401 signature_mismatch',
    async (service) => {
      const headers = { 'X-POS-Signature': undefined };
      const answer = await service.post('/sale', saleOf(service), { headers });
      expectRefusal(answer, 401, 'signature_mismatch');
    },
  ],
  [
    'routes: an unknown one is 404 in JSON',
    async (service) =>
      expectAnswer(await service.post('/nothing', {}), 404, { ok: false, code: some.text }),
  ],
];
