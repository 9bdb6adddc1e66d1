import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

// eslint-disable-next-line @typescript-eslint/no-require-imports -- the command is plain JavaScript
const { siteFolders } = require('../../../bin/lib/site-folders') as {
  siteFolders: (
    compile: () => Promise<{ appDir: string; distDir: string }>,
    appDir: string
  ) => Promise<{ appDir: string; distDir: string }>;
};

const BUILT = new Date('2026-03-01T12:00:00Z');
const BEFORE = new Date('2026-03-01T11:00:00Z');
const AFTER = new Date('2026-03-01T13:00:00Z');

const FILES: Record<string, Date> = {
  'tsconfig.json': BEFORE,
  'package.json': AFTER,
  'src/index.ts': BEFORE,
  'src/api/lead/content-types/lead/schema.json': BEFORE,
  'src/plugins/own/node_modules/x/index.js': AFTER,
  'config/server.ts': BEFORE,
  'dist/tsconfig.tsbuildinfo': BUILT,
  'dist/src/index.js': BUILT,
  'dist/config/server.js': BEFORE,
};

describe('what a command loads of a TypeScript site', () => {
  let site: string;
  const file = (name: string) => path.join(site, name);
  /** Gives every folder a time, the deepest first: what is in it changes its own. */
  const settle = (folder: string, time: Date): void => {
    for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
      if (entry.isDirectory()) settle(path.join(folder, entry.name), time);
    }
    fs.utimesSync(folder, time, time);
  };
  beforeEach(() => {
    site = fs.mkdtempSync(path.join(os.tmpdir(), 'switchboard-folders-'));
    for (const [name, time] of Object.entries(FILES)) {
      fs.mkdirSync(path.dirname(file(name)), { recursive: true });
      fs.writeFileSync(file(name), '{ "compilerOptions": {\n  "outDir": "dist"\n} }');
      fs.utimesSync(file(name), time, time);
    }
    settle(site, BEFORE);
  });
  afterEach(() => fs.rmSync(site, { recursive: true, force: true }));

  const isCompiled = async (): Promise<boolean> => {
    let compiled = false;
    const answer = { appDir: site, distDir: file('dist') };
    const folders = await siteFolders(async () => {
      compiled = true;
      return answer;
    }, site);
    expect(folders).toEqual(answer);
    return compiled;
  };
  const touch = (name: string) => fs.utimesSync(file(name), AFTER, AFTER);

  it('is dist where nothing changed since it was made', async () => {
    expect(await isCompiled()).toBe(false);
  });

  it.each(['src/index.ts', 'src/api/lead/content-types/lead/schema.json', 'tsconfig.json'])(
    'is compiled anew where %s changed since',
    async (name) => {
      touch(name);
      expect(await isCompiled()).toBe(true);
    }
  );

  it('is compiled anew where a file was taken away or added', async () => {
    touch('src/api/lead');
    expect(await isCompiled()).toBe(true);
  });

  it.each(['dist', 'dist/config', 'tsconfig.json'])(
    'is the host’s to find without %s',
    async (name) => {
      fs.rmSync(file(name), { recursive: true });
      expect(await isCompiled()).toBe(true);
    }
  );

  it('is the host’s to find where tsconfig.json does not say where compiled files go', async () => {
    fs.writeFileSync(file('tsconfig.json'), '{ "extends": "./base.json" }');
    fs.utimesSync(file('tsconfig.json'), BEFORE, BEFORE);
    expect(await isCompiled()).toBe(true);
  });
});
