import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { loadOptional, type OptionalPackage } from '../../../server/src/runtime/optional-package';

const OPTION = 'scheduler.engine is "bullmq"';
const names: OptionalPackage[] = ['bullmq', 'ioredis'];

const load = (
  versions: Partial<Record<OptionalPackage, string>>,
  one: (name: string) => Promise<unknown> = async (name) => `loaded ${name}`
) => loadOptional(OPTION, names, one, (name) => versions[name] ?? null);

describe('packages that an option needs', () => {
  it.each([
    { bullmq: '5.81.5', ioredis: '5.11.1' },
    { bullmq: '6.7.0', ioredis: '6.0.0' },
    { bullmq: '6.7.0-beta.1' },
    {},
  ])('are loaded where their versions are %j', async (versions) => {
    expect(await load(versions)).toEqual(['loaded bullmq', 'loaded ioredis']);
  });

  it('are refused by what was found and what is supported', async () => {
    await expect(load({ bullmq: '4.18.3', ioredis: '5.11.1' })).rejects.toThrow(
      'The plugin switchboard: scheduler.engine is "bullmq", and bullmq is 4.18.3, and supported are ' +
        '5 and 6. Run: npm install bullmq@6 ioredis@6'
    );
    await expect(load({ bullmq: '7.0.0', ioredis: '4.31.0' })).rejects.toThrow(
      /bullmq is 7\.0\.0, .*; ioredis is 4\.31\.0, and supported are 5 and 6\./
    );
  });

  it('are named with what installs them where they are missing', async () => {
    const missing = Object.assign(new Error('x'), { code: 'ERR_MODULE_NOT_FOUND' });
    await expect(load({}, () => Promise.reject(missing))).rejects.toThrow(
      /its packages are not installed\. Run: npm install bullmq ioredis$/
    );
    const broken = load({}, () => Promise.reject(new Error('a broken file')));
    await expect(broken).rejects.toThrow(/could not be loaded \(.*a broken file\)/);
  });

  it('are found in the folder of the site', async () => {
    const [bullmq] = await loadOptional('x', ['bullmq']);
    expect(bullmq).toHaveProperty('Queue');
  });

  it('are judged and loaded from the one folder, wherever the plugin stands', async () => {
    const site = fs.mkdtempSync(path.join(os.tmpdir(), 'switchboard-site-'));
    const own = path.join(site, 'node_modules', 'bullmq');
    fs.mkdirSync(own, { recursive: true });
    fs.writeFileSync(path.join(own, 'index.js'), "exports.from = 'the site';");
    const install = (version: string) =>
      fs.writeFileSync(path.join(own, 'package.json'), JSON.stringify({ name: 'bullmq', version }));
    const before = process.cwd();
    process.chdir(site);
    try {
      install('6.99.0');
      expect(await loadOptional('x', ['bullmq'])).toEqual([{ from: 'the site' }]);
      install('7.0.0');
      await expect(loadOptional('x', ['bullmq'])).rejects.toThrow(/bullmq is 7\.0\.0, .*6\./);
    } finally {
      process.chdir(before);
      fs.rmSync(site, { recursive: true, force: true });
    }
  });
});
