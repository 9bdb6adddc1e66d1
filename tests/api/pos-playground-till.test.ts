import { fork } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { FIRST_ADMIN } from '../support/accounts';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import { admin, levelOf, rebuild } from './pos-till';

jest.setTimeout(120_000);

describe('the till of the playground', () => {
  let site: Site;
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'playground-till-'));

  beforeAll(async () => {
    site = await startSite();
    const login = { email: FIRST_ADMIN.email, password: FIRST_ADMIN.password };
    fs.writeFileSync(path.join(folder, 'playground.json'), JSON.stringify({ login }));
  });
  afterAll(async () => {
    await site?.stop();
    fs.rmSync(folder, { recursive: true, force: true });
  });

  it('makes its connection and items, sells, refunds before the sale, and counts', async () => {
    const { NODE_OPTIONS: _jest, ...env } = process.env;
    const child = fork(path.resolve('playground/till.mjs'), [], {
      env: { ...env, SITE_URL: site.url, DATA: folder, TILL_INTERVAL_MS: '600000' },
      execArgv: [],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    const ended = new Promise((resolve) => child.once('exit', resolve));
    try {
      const events = await waitFor(async () => {
        const list = await admin(site, 'GET', '/pos-events');
        const done = list.filter(({ state }: { state: string }) => state === 'applied');
        return done.length === 6 && done;
      }, 30_000);
      const kinds = events.map(({ kind }: { kind: string }) => kind).reverse();
      expect(kinds).toEqual(['sale', 'refund', 'sale', 'sale', 'inventory', 'inventory']);
      expect(await levelOf(site, 'TEA-GREEN')).toBeGreaterThanOrEqual(49);
      expect((await rebuild(site)).differences).toEqual([]);
    } finally {
      child.kill('SIGTERM');
      await ended;
    }
  });
});
