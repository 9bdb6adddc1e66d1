import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import {
  generateSecret,
  signatureHeaders,
} from '../../../server/src/webhooks/rules/request-headers';
import { codeBlocks, readDocument } from './support/markdown';

/** The code of docs/automation-tools.md, run as the tools run it. */

const block = (part: string): string => {
  const found = codeBlocks(readDocument('docs/automation-tools.md')).filter(({ code }) =>
    code.includes(part)
  );
  expect(found).toHaveLength(1);
  return found[0]!.code;
};

const secret = generateSecret();
const body = '{"id":"1","event":"contact.created","data":{"email":"zoë@example.com"}}';

const post = (options: { at?: number; with?: string } = {}) => {
  const timestamp = Math.floor(Date.now() / 1000) - (options.at ?? 0);
  const signed = signatureHeaders({
    secret: options.with ?? secret,
    deliveryId: '1',
    event: 'contact.created',
    timestamp,
    body,
  });
  return Object.fromEntries(
    Object.entries(signed).map(([name, value]) => [name.toLowerCase(), value])
  );
};

const AsyncFunction = Object.getPrototypeOf(async () => {}).constructor as new (
  ...parts: string[]
) => (...values: unknown[]) => Promise<unknown>;
const load = createRequire(__filename);

describe('the code for n8n', () => {
  const code = block('$input.first()');
  const run = (
    headers: Record<string, string>,
    raw = body,
    env: object = { WEBHOOK_SECRET: secret }
  ): Promise<unknown> =>
    new AsyncFunction('require', '$input', '$env', code).call(
      { helpers: { getBinaryDataBuffer: async () => Buffer.from(raw) } },
      load,
      { first: () => ({ json: { headers } }) },
      env
    );

  it('hands on what is genuine', async () => {
    expect(await run(post())).toEqual([{ json: JSON.parse(body) }]);
  });

  it('ends with an error where it is not', async () => {
    await expect(run(post(), `${body} `)).rejects.toThrow('not genuine');
    await expect(run(post({ with: generateSecret() }))).rejects.toThrow('not genuine');
    await expect(run(post({ at: 400 }))).rejects.toThrow('too old');
    await expect(run({})).rejects.toThrow('too old');
  });

  it.each([{}, { WEBHOOK_SECRET: '' }])(
    'takes nothing while the environment is %j',
    async (env) => {
      await expect(run(post({ with: '' }), body, env)).rejects.toThrow('missing');
    }
  );
});

describe('the code for Zapier', () => {
  const code = block('inputData');
  const run = (headers: Record<string, string>, given: object = {}): Promise<unknown> =>
    new AsyncFunction('require', 'inputData', code)(load, {
      raw: body,
      timestamp: headers['x-service-timestamp'],
      signature: headers['x-service-signature'],
      secret,
      ...given,
    });

  it('hands on what is genuine', async () => {
    expect(await run(post())).toEqual(JSON.parse(body));
  });

  it('ends with an error where it is not', async () => {
    await expect(run(post(), { raw: `${body} ` })).rejects.toThrow('not genuine');
    await expect(run(post(), { signature: undefined })).rejects.toThrow('not genuine');
    await expect(run(post({ at: 400 }))).rejects.toThrow('too old');
    await expect(run(post(), { secret: undefined })).rejects.toThrow('missing');
  });
});

describe('the step in between', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'switchboard-step-'));
  const file = path.join(folder, 'step.mjs');
  const told: string[] = [];
  const slack = http.createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    told.push(Buffer.concat(chunks).toString());
    if (told.length === 1) response.end('ok');
    else response.writeHead(429, { 'Retry-After': '7' }).end();
  });
  let step: ChildProcess | undefined;
  let url = '';

  beforeAll(async () => {
    fs.writeFileSync(file, block('SLACK_URL'));
    await once(slack.listen(0, '127.0.0.1'), 'listening');
    const free = net.createServer().listen(0, '127.0.0.1');
    await once(free, 'listening');
    const { port } = free.address() as net.AddressInfo;
    free.close();
    await once(free, 'close');
    url = `http://127.0.0.1:${port}/`;
    const { port: slackPort } = slack.address() as net.AddressInfo;
    step = spawn(process.execPath, [file], {
      env: {
        ...process.env,
        PORT: String(port),
        WEBHOOK_SECRET: secret,
        SLACK_URL: `http://127.0.0.1:${slackPort}/`,
      },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    for (let i = 0; i < 300; i += 1) {
      if (await fetch(url, { method: 'POST' }).catch(() => null)) break;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }, 60_000);
  afterAll(() => {
    step?.kill('SIGKILL');
    slack.closeAllConnections();
    slack.close();
    fs.rmSync(folder, { recursive: true, force: true });
  });

  it('refuses what is not genuine, and passes on what is', async () => {
    const send = (headers: Record<string, string>): Promise<Response> =>
      fetch(url, { method: 'POST', headers, body });
    expect((await send(post({ with: generateSecret() }))).status).toBe(401);
    expect((await send(post({ at: 400 }))).status).toBe(401);
    expect(told).toEqual([]);
    expect((await send(post())).status).toBe(200);
    expect(told.map((text) => JSON.parse(text) as unknown)).toEqual([
      { text: 'contact.created zoë@example.com' },
    ]);
    const full = await send(post());
    expect([full.status, full.headers.get('retry-after')]).toEqual([429, '7']);
  });

  it('does not start without a secret', async () => {
    const child = spawn(process.execPath, [file], {
      env: { ...process.env, WEBHOOK_SECRET: '', SLACK_URL: url, PORT: '0' },
      stdio: 'ignore',
    });
    const [code] = (await once(child, 'exit')) as [number];
    expect(code).not.toBe(0);
  });
});
