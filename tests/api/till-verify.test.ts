import { spawn } from 'node:child_process';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { type Site, startSite } from '../support/site';
import { BASE, createItem, createTill } from './pos-till';

/** `npx switchboard-till verify` against a site, and against services that break the contract. */

jest.setTimeout(180_000);

const COMMAND = path.resolve(__dirname, '../../till-client/bin/switchboard-till.mjs');

const run = (args: string[], env: Record<string, string | undefined>) =>
  new Promise<{ code: number | null; out: string[]; errors: string }>((resolve) => {
    const child = spawn(process.execPath, [COMMAND, ...args], {
      env: { ...process.env, NODE_OPTIONS: '', POS_KEY: undefined, POS_SECRET: undefined, ...env },
      timeout: 170_000,
    });
    let [out, errors] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => (out += String(chunk)));
    child.stderr.on('data', (chunk: Buffer) => (errors += String(chunk)));
    child.once('close', (code) =>
      resolve({ code, out: out.split('\n').filter((line) => line !== ''), errors })
    );
  });

interface Exchange {
  method: string;
  path: string;
  body: string;
  status: number;
  answer: Record<string, unknown>;
}

/** A till service that hands everything on, and changes what it is told to. */
const startProxy = async (site: Site, change: (exchange: Exchange) => void) => {
  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { host: _, connection: _connection, ...headers } = request.headers;
      const body = Buffer.concat(chunks);
      const onward = http.request(
        `${site.url}${request.url}`,
        { method: request.method, headers },
        (answer) => {
          const parts: Buffer[] = [];
          answer.on('data', (part: Buffer) => parts.push(part));
          answer.on('end', () => {
            const exchange: Exchange = {
              method: request.method ?? '',
              path: (request.url ?? '').replace(BASE, ''),
              body: body.toString(),
              status: answer.statusCode ?? 0,
              answer: JSON.parse(Buffer.concat(parts).toString()) as Record<string, unknown>,
            };
            change(exchange);
            response.writeHead(exchange.status, { 'content-type': 'application/json' });
            response.end(JSON.stringify(exchange.answer));
          });
        }
      );
      onward.end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${BASE}`,
    close: () => new Promise((resolve) => server.close(resolve)),
  };
};

describe('switchboard-till verify', () => {
  let site: Site;
  let env: { POS_KEY: string; POS_SECRET: string };

  const connect = async (more: Record<string, unknown>) => {
    const till = await createTill(site, { mode: 'test', ...more });
    return { POS_KEY: till.key, POS_SECRET: till.secret };
  };

  beforeAll(async () => {
    site = await startSite({
      options: { pos: { ratePerMinute: 100_000, failedAuthPerMinute: 100_000 } },
    });
    for (let n = 0; n < 12; n += 1) await createItem(site, `SHELF-${n}`, n);
    env = await connect({
      scopes: ['sale:write', 'refund:write', 'inventory:write', 'stock:read', 'closing:write'],
    });
  });
  afterAll(() => site?.stop());

  it('finds nothing at a site, and writes no stock', async () => {
    const { code, out } = await run(['verify', `${site.url}${BASE}/`], env);
    expect(out).toEqual([expect.stringMatching(/^\d\d kept, 0 not kept, 0 not tried$/)]);
    expect(code).toBe(0);
    const levels = await site.request('GET', '/switchboard/levels?per_page=100');
    expect(JSON.stringify(levels.body)).not.toContain('verify-');
  });

  it('says what a connection’s scopes keep it from trying', async () => {
    const limited = await connect({ scopes: ['sale:write'] });
    const { code, out } = await run(['verify', `${site.url}${BASE}`], limited);
    expect(code).toBe(0);
    const untried = out.filter((line) => line.startsWith('not tried')).join('\n');
    for (const scope of ['refund:write', 'inventory:write', 'stock:read', 'closing:write']) {
      expect(untried).toContain(`(the connection has no ${scope})`);
    }
  });

  it.each<[string, (exchange: Exchange) => void, string[]]>([
    [
      'forgets duplicates',
      (exchange) => {
        if (exchange.answer.duplicate !== true || exchange.path === '/validate') return;
        exchange.status = 202;
        exchange.answer.duplicate = false;
      },
      [
        'sale: the same bytes again are 200 with duplicate: true and the same event_id: answers 202, not 200',
        'sale: six at the same time are one record',
        'refund: it shares its ids with other kinds',
      ],
    ],
    [
      'answers with other codes, orders, states and pages',
      (exchange) => {
        const { path: route, answer } = exchange;
        delete answer.skew_seconds;
        if (answer.code === 'signature_mismatch') answer.code = 'forbidden';
        if (route === '/batch' && Array.isArray(answer.results)) answer.results.reverse();
        if (exchange.status === 409) exchange.status = 202;
        if (route === '/catalogue') answer.cursor = null;
        if (route === '/validate') answer.unknown = [];
        if (route === '/ping') answer.schema = 'v2';
        if (route !== '/closing' || answer.ok !== true) return;
        Object.assign(answer, { state: 'matched', missing: [], differences: [] });
        if (answer.duplicate === true) exchange.status = 202;
      },
      [
        'time: 400 seconds late is 401 timestamp_outside_window with skew_seconds: answers skew_seconds undefined',
        'signature: it covers the exact bytes: answers code "forbidden", not "signature_mismatch"',
        'batch: records take effect in the order sent: answers 400, 200, 202, not 202, 200, 400',
        'inventory: a count older than the last one is 409 stale_count: answers 202 stale_count, not 409',
        'ping: answers with the key alone: answers schema "v2", not "v1"',
        'validate: tells what a record would become, and takes no id: does not name the unknown SKU',
        'catalogue: pages have items, a cursor and has_more: answers cursor null',
        'closing: one that fits is matched, and 200 again: answers 202, not 200',
        'closing: one that differs names what is missing and which sums: answers state "matched", not "differs"',
      ],
    ],
  ])('names what a service breaks that %s', async (_what, change, expected) => {
    const proxy = await startProxy(site, change);
    try {
      const { code, out } = await run(['verify', proxy.url], env);
      const broken = out.filter((line) => line.startsWith('not kept: '));
      for (const line of expected) {
        expect(broken.filter((one) => one.startsWith(`not kept: ${line}`))).toHaveLength(1);
      }
      expect(out.at(-1)).toContain(` ${broken.length} not kept, `);
      expect(code).toBe(1);
    } finally {
      await proxy.close();
    }
  });

  it('refuses a live connection, and sends nothing with it', async () => {
    const live = await connect({ mode: 'live', name: 'Front counter' });
    const { code, out } = await run(['verify', `${site.url}${BASE}`], live);
    expect(out).toEqual([
      'not verified: Front counter is a live connection; give one in test mode, which writes no stock',
    ]);
    expect(code).toBe(1);
  });

  it('says that it cannot ask', async () => {
    const wrongKey = await run(['verify', `${site.url}${BASE}`], { ...env, POS_KEY: 'pos_test_x' });
    expect(wrongKey).toMatchObject({
      code: 1,
      out: ['not verified: ping answers 401 unknown_key, not 200'],
    });
    const nobody = await run(['verify', 'http://127.0.0.1:9/api'], env);
    expect(nobody.code).toBe(1);
    expect(nobody.out).toEqual([expect.stringMatching(/^not verified: the service cannot be/)]);
  });

  it('says that a service has no closings', async () => {
    const proxy = await startProxy(site, (exchange) => {
      if (exchange.path === '/closing') Object.assign(exchange, { status: 404, answer: {} });
    });
    try {
      const { code, out } = await run(['verify', proxy.url], env);
      const untried = out.filter((line) => line.startsWith('not tried: closing: '));
      expect(untried).toHaveLength(2);
      for (const line of untried) expect(line).toContain('(the service has no closings)');
      expect(code).toBe(0);
    } finally {
      await proxy.close();
    }
  });

  it.each([
    [['--help']],
    [['-h']],
    [['verify', '--help']],
    [['verify', '-h']],
    [['verify', 'http://127.0.0.1:9/api', '--help']],
  ])('%j: how it is used, and 0', async (args) => {
    const { code, out, errors } = await run(args, {});
    expect([code, errors]).toEqual([0, '']);
    const said = out.join('\n');
    expect(said).toMatch(/^usage: .*switchboard-till verify https:/);
    for (const part of ['POS_KEY', 'POS_SECRET', 'test mode', 'Exit 0'])
      expect(said).toContain(part);
  });

  it.each([
    ['no command', [], {}],
    ['there is no command check', ['check'], {}],
    ['no address', ['verify'], {}],
    ['there is no option --fast', ['verify', '--fast', 'http://x'], {}],
    ['there is no option -x', ['verify', 'http://x', '-x'], {}],
    ['nonsense is no http address', ['verify', 'nonsense'], {}],
    ['ftp://x is no http address', ['verify', 'ftp://x'], {}],
    ['twice is too much', ['verify', 'http://x', 'twice'], {}],
    ['POS_KEY and POS_SECRET are not set', ['verify', 'http://x'], { POS_SECRET: ' ' }],
    ['POS_KEY and POS_SECRET are not set', ['verify', 'http://x'], { POS_KEY: undefined }],
  ])('%s: one line and 2', async (message, args, changes) => {
    const { code, out, errors } = await run(args, { ...env, ...changes });
    expect([code, out]).toEqual([2, []]);
    expect(errors).toMatch(new RegExp(`^${message}; usage: .*\n$`));
  });
});
