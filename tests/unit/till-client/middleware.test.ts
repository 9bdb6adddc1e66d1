import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { verifySignature } from '../../../server/src/pos/intake/authentication';
import { readRecord } from '../../../server/src/pos/rules/validate';
import { FakeService, makeFolder } from './support';

/** examples/middleware, as a stranger would run it, between a fixed-format till and a service. */

const SECRET = 'pos_secret_middleware';
const TOKEN = 'a-long-random-word';

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as net.AddressInfo;
      server.close(() => resolve(port));
    });
  });

describe('examples/middleware', () => {
  let service: FakeService;
  let folder: string;
  let child: ChildProcess;
  let address: string;

  beforeAll(async () => {
    service = await FakeService.start();
    folder = makeFolder();
    const port = await freePort();
    address = `http://127.0.0.1:${port}/receipts`;
    child = spawn(process.execPath, [path.resolve('examples/middleware/reshape.mjs')], {
      env: {
        ...process.env,
        NODE_OPTIONS: '',
        POS_URL: service.url,
        POS_KEY: 'pos_live_middleware',
        POS_SECRET: SECRET,
        TILL_TOKEN: TOKEN,
        PORT: String(port),
        FOLDER: folder,
      },
      stdio: 'ignore',
    });
    for (;;) {
      if (await fetch(address).catch(() => null)) break;
      if (child.exitCode !== null) throw new Error('the middleware could not start');
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }, 60_000);
  afterAll(async () => {
    child.kill();
    await service.close();
    fs.rmSync(folder, { recursive: true, force: true });
  });
  beforeEach(() => void service.received.splice(0));

  it.each(['POS_URL', 'POS_KEY', 'POS_SECRET', 'TILL_TOKEN'])(
    'does not start without %s',
    (name) => {
      const settings = {
        POS_URL: service.url,
        POS_KEY: 'k',
        POS_SECRET: SECRET,
        TILL_TOKEN: TOKEN,
      };
      for (const value of ['', '  ']) {
        const { status, stderr } = spawnSync(
          process.execPath,
          [path.resolve('examples/middleware/reshape.mjs')],
          {
            env: { ...process.env, NODE_OPTIONS: '', PORT: '0', ...settings, [name]: value },
            encoding: 'utf8',
            timeout: 30_000,
          }
        );
        expect(status).toBe(1);
        expect(stderr).toContain(name);
      }
    }
  );

  const receipt = (changes: object = {}) => ({
    Type: 'SALE',
    Register: 'K2',
    ReceiptNo: '000451',
    Time: '2026-03-01T14:05:00+01:00',
    Currency: 'GBP',
    Total: '19.99',
    Positions: [{ Code: 'MUG-BLUE', Qty: '1', Price: '19.99' }],
    ...changes,
  });
  const post = async (body: unknown, token = TOKEN) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    return (await fetch(`${address}?token=${token}`, { method: 'POST', body: text })).status;
  };
  const arrived = async (count: number) => {
    while (service.received.length < count) await new Promise((resolve) => setTimeout(resolve, 5));
    return service.received.map(({ path: route, body, headers }) => {
      const timestamp = String(headers['x-pos-timestamp']);
      const signature = String(headers['x-pos-signature']);
      const bytes = Buffer.from(body);
      expect(verifySignature(SECRET, { timestamp, signature, body: bytes })).toBe(true);
      const kind = route.slice(1) as 'sale';
      expect(readRecord(kind, bytes, Date.now())).toMatchObject({ ok: true });
      return [kind, JSON.parse(body) as Record<string, unknown>];
    });
  };

  it('makes a signed, valid sale of a receipt, with amounts by their digits', async () => {
    expect(await post(receipt())).toBe(200);
    expect(await arrived(1)).toEqual([
      [
        'sale',
        {
          external_id: 'K2-000451',
          occurred_at: '2026-03-01T14:05:00+01:00',
          currency: 'GBP',
          total: 1999,
          line_items: [{ sku: 'MUG-BLUE', quantity: 1, unit_price: 1999 }],
        },
      ],
    ]);
  });

  it.each([
    ['HUF', '1990', 199_000],
    ['IQD', '12.5', 12_500],
    ['JPY', '1250', 1250],
    ['UYW', '1,2345', 12_345],
  ])('has the digits that ISO 4217 gives %s: %s is %d', async (Currency, Total, total) => {
    const Positions = [{ Code: 'MUG-BLUE', Qty: '1', Price: Total }];
    await post(receipt({ Currency, Total, Positions }));
    expect(await arrived(1)).toMatchObject([
      ['sale', { currency: Currency, total, line_items: [{ unit_price: total }] }],
    ]);
  });

  it('sends the same id when the till comes again', async () => {
    await post(receipt());
    await post(receipt());
    const [first, second] = await arrived(2);
    expect(second).toEqual(first);
  });

  it('makes a refund of a return', async () => {
    const positions = [{ Code: 'MUG-BLUE', Qty: -1, Price: '19.99' }];
    await post(receipt({ Type: 'RETURN', OriginalReceiptNo: '000400', Positions: positions }));
    expect(await arrived(1)).toMatchObject([
      ['refund', { sale_external_id: 'K2-000400', line_items: [{ sku: 'MUG-BLUE', quantity: 1 }] }],
    ]);
  });

  it('never sells what a customer hands back', async () => {
    const positions = [
      { Code: 'MUG-BLUE', Qty: 2, Price: '19.99' },
      { Code: 'MUG-RED', Qty: -1, Price: '8.99' },
    ];
    await post(receipt({ Positions: positions }));
    expect(await arrived(2)).toMatchObject([
      ['sale', { line_items: [{ sku: 'MUG-BLUE', quantity: 2 }] }],
      ['inventory', { mode: 'relative', counts: [{ sku: 'MUG-RED', quantity: 1 }] }],
    ]);
  });

  it.each([
    ['no JSON', 'x'],
    ['no positions', receipt({ Positions: [] })],
    ['a third of a mug', receipt({ Positions: [{ Code: 'A', Qty: '0.33', Price: '1' }] })],
    ['an amount with three decimals', receipt({ Total: '1.999' })],
  ])('answers 400 to %s and forwards nothing', async (_what, body) => {
    expect(await post(body)).toBe(400);
    expect(service.received).toEqual([]);
  });

  it('takes receipts from its own till only', async () => {
    expect(await post(receipt(), 'guess')).toBe(401);
    expect(service.received).toEqual([]);
  });
});
