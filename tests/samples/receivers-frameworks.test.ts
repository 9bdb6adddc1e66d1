import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { generateSecret, signatureHeaders } from '../../server/src/webhooks/rules/request-headers';
import { install, SAMPLES } from '../support/receiver-samples';
import { available, describeReceiver } from './receiver-suite';

/** The receivers of `examples/receivers` for a framework, which answer at a path of their own. */

const here = available(({ path: at }) => at !== '/');

describe.each(here)('examples/receivers/$folder', (sample) => {
  // The others, such as none at all, are refused by the same line of each, and tried with the plain ones.
  describeReceiver(sample, ['whsec_ ']);
});

const hono = here.filter(({ folder }) => folder === 'hono');

describe.each(hono)('examples/receivers/$folder/worker.mjs', (sample) => {
  const secret = generateSecret();
  const body = JSON.stringify({ id: '0195f3c2-8a40-7b21-9c0d-4e5f60718293', event: 'ping' });
  const timestamp = Math.floor(Date.now() / 1000);
  const headers = signatureHeaders({ secret, deliveryId: 'd', event: 'ping', timestamp, body });
  const database = new Database(':memory:');
  /** What of D1 the sample calls. */
  const DB = {
    prepare: (statement: string) => ({
      bind: (...values: unknown[]) => ({
        run: async () => ({
          meta: { changes: database.prepare(statement).run(...values).changes },
        }),
      }),
    }),
  };

  const worker = async () => {
    const { folder } = install(sample);
    const loaded = (await import(path.join(folder, 'worker.mjs'))) as {
      default: { fetch(request: Request, env: object): Promise<Response> };
    };
    return (sent: string, env: object) =>
      loaded.default.fetch(
        new Request('https://worker.example/hooks', { method: 'POST', headers, body: sent }),
        env
      );
  };

  beforeAll(() => {
    const source = fs.readFileSync(path.join(install(sample).folder, 'worker.mjs'), 'utf8');
    database.exec(/"(CREATE TABLE [^"]+)"/.exec(source)![1]!);
  });

  afterAll(() => database.close());

  it('stores an event once, and nothing that is not genuine', async () => {
    const answer = await worker();
    const env = { WEBHOOK_SECRET: secret, DB };
    for (const sent of [body, body]) expect((await answer(sent, env)).status).toBe(204);
    expect((await answer(body.replace('ping', 'pong'), env)).status).toBe(401);
    expect(database.prepare('SELECT body FROM events').all()).toEqual([{ body }]);
  });

  it.each([undefined, '', 'whsec_'])('answers 500 where the secret is %j', async (none) => {
    const answer = await worker();
    expect((await answer(body, { WEBHOOK_SECRET: none, DB })).status).toBe(500);
  });
});

it('each framework has a sample', () => {
  const named = SAMPLES.map(({ framework }) => framework).join();
  for (const framework of [
    ...['Express', 'Fastify', 'Next.js', 'Hono', 'NestJS', 'Laravel', 'Symfony', 'Django'],
    ...['FastAPI', 'Flask', 'Rails', 'Go', 'Spring', 'C#'],
  ]) {
    expect(named).toContain(framework);
  }
});
