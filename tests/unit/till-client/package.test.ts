import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import ts from 'typescript';
import { ROOT } from '../docs/support/markdown';

/** The package `switchboard-till` as somebody else gets it, and what the plugin exports of it. */

jest.setTimeout(240_000);

const EXPORTS = ['TillError', 'createOfflineTill', 'createTill', 'sign'];
const SIZE = 20_000;

const read = <T>(file: string): T =>
  JSON.parse(fs.readFileSync(path.join(ROOT, file), 'utf8')) as T;

const run = (program: string, args: string[], cwd = ROOT) =>
  spawnSync(program, args, {
    cwd,
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: '', POS_KEY: '', POS_SECRET: '' },
  });

interface Packed {
  name: string;
  size: number;
  files: { path: string }[];
}

const pack = (folder: string): Packed => {
  const command = ['pack', '--dry-run', '--json', '--ignore-scripts', '--offline'];
  const { stdout } = run('npm', command, folder);
  return (JSON.parse(stdout.slice(stdout.indexOf('['))) as [Packed])[0];
};

let packed: Packed;
let site: string;

beforeAll(() => {
  packed = pack(path.join(ROOT, 'till-client'));
  site = fs.mkdtempSync(path.join(os.tmpdir(), 'till-package-'));
  const target = path.join(site, 'node_modules/switchboard-till');
  for (const { path: name } of packed.files) {
    fs.mkdirSync(path.dirname(path.join(target, name)), { recursive: true });
    fs.copyFileSync(path.join(ROOT, 'till-client', name), path.join(target, name));
  }
});
afterAll(() => fs.rmSync(site, { recursive: true, force: true }));

it('is built of its sources', () => {
  const { status, stderr } = run(process.execPath, ['scripts/build-till-client.mjs', '--check']);
  expect([stderr, status]).toEqual(['', 0]);
});

it('is small, and needs nothing else', () => {
  expect(packed.name).toBe('switchboard-till');
  expect(packed.size).toBeGreaterThan(5000);
  expect(packed.size).toBeLessThanOrEqual(SIZE);
  const own = read<Record<string, unknown>>('till-client/package.json');
  expect(Object.keys(own).filter((name) => /dependencies/i.test(name))).toEqual([]);
  expect(own.version).toBe(read<{ version: string }>('package.json').version);
});

const inNode = (code: string) => {
  const { stdout, stderr } = run(process.execPath, ['--input-type=module', '-e', code], site);
  expect(stderr).toBe('');
  return JSON.parse(stdout) as unknown;
};

it('is imported and required, with one TillError', () => {
  const told = inNode(`
    import { createRequire } from 'node:module';
    import * as imported from 'switchboard-till';
    const required = createRequire(process.cwd() + '/x.js')('switchboard-till');
    const same = imported.TillError === required.TillError;
    console.log(JSON.stringify([Object.keys(imported).sort(), Object.keys(required).sort(), same]));`);
  expect(told).toEqual([EXPORTS, EXPORTS, true]);
});

it('has a module for pages, which bundlers take by themselves', () => {
  const code = `import * as page from 'switchboard-till'; import * as named from 'switchboard-till/browser';
    console.log(JSON.stringify([Object.keys(page).sort(), page.TillError === named.TillError]));`;
  const args = ['--conditions=browser', '--input-type=module', '-e', code];
  expect(JSON.parse(run(process.execPath, args, site).stdout)).toEqual([EXPORTS, true]);
  const text = fs.readFileSync(path.join(ROOT, 'till-client/browser.mjs'), 'utf8');
  expect(text).not.toMatch(/\bimport\b|\brequire\b|\bBuffer\b|\bprocess\b/);
});

it('asks the browser to keep what waits', () => {
  const code = `import { createOfflineTill } from 'switchboard-till/browser';
    let asked = 0;
    const persist = async () => { asked += 1; throw new Error('not in a private window'); };
    const make = (navigator) => {
      Object.defineProperty(globalThis, 'navigator', { value: navigator, configurable: true });
      createOfflineTill({ url: 'u', key: 'k', secret: 's', folder: 'f' });
    };
    make({});
    make({ storage: { persist } });
    setTimeout(() => console.log(asked));`;
  expect(inNode(code)).toBe(1);
});

it('has a command', () => {
  const { bin } = read<{ bin: Record<string, string> }>('till-client/package.json');
  const program = path.join(site, 'node_modules/switchboard-till', bin['switchboard-till']!);
  const { status, stderr } = run(process.execPath, [program, 'verify', 'http://127.0.0.1:9'], site);
  expect([status, stderr.split('\n')[0]]).toEqual([
    2,
    expect.stringContaining('POS_KEY and POS_SECRET'),
  ]);
});

const SALE = `{ external_id: 'a', occurred_at: 'b', currency: 'GBP', total: 1, line_items: [] }`;
const USE = (from: string) => `
  import { createOfflineTill, createTill, type Settlement, TillError } from '${from}';
  const made = createTill({ url: 'u', key: 'k', secret: 's', now: () => 0 });
  export const sold: Promise<number> = made.sale(${SALE}).then(({ event_id }) => event_id);
  export const closed: Promise<string[] | undefined> = made.closing('{}').then((one) => one.missing);
  export const kept = createOfflineTill({ url: 'u', key: 'k', secret: 's', folder: 'f',
    onSettled: (one: Settlement) => { const bytes: Uint8Array = one.body; void bytes; } });
  export const isOurs = (error: unknown): boolean => error instanceof TillError && error.retryable;
  // @ts-expect-error a total is a number
  void made.sale({ ...${SALE}, total: '1' });`;

const libraries = new Map<string, ts.SourceFile | undefined>();

/** Reads the compiler's own declarations once for all: they are most of what each of these programs has. */
const hostOf = (options: ts.CompilerOptions): ts.CompilerHost => {
  const host = ts.createCompilerHost(options);
  const { getSourceFile } = host;
  host.getSourceFile = (name, ...how) => {
    if (!/\/lib\.[\w.]+\.d\.ts$/.test(name)) return getSourceFile(name, ...how);
    if (!libraries.has(name)) libraries.set(name, getSourceFile(name, ...how));
    return libraries.get(name);
  };
  return host;
};

const { Node16, Bundler, Node10 } = ts.ModuleResolutionKind;

it.each([
  ['an ES module and CommonJS', ['use.mts', 'use.cts'], 'switchboard-till', Node16, ['node']],
  ['CommonJS of before', ['use-old.ts'], 'switchboard-till', Node10, ['node']],
  ['a page without the types of Node', ['page.ts'], 'switchboard-till/browser', Bundler, []],
])('has types for %s', (_what, files, from, moduleResolution, types) => {
  const roots = files.map((file) => path.join(site, file));
  for (const root of roots) fs.writeFileSync(root, USE(from));
  const isNode16 = moduleResolution === Node16;
  const options: ts.CompilerOptions = {
    strict: true,
    // Those of Node take half a minute; ours are read with the page, where only the compiler's are skipped.
    skipLibCheck: types.length > 0,
    skipDefaultLibCheck: true,
    noEmit: true,
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2022.d.ts', 'lib.dom.d.ts'],
    module: isNode16
      ? ts.ModuleKind.Node16
      : moduleResolution === Bundler
        ? ts.ModuleKind.ESNext
        : ts.ModuleKind.CommonJS,
    moduleResolution,
    typeRoots: [path.join(ROOT, 'node_modules/@types')],
    types,
  };
  const program = ts.createProgram(roots, options, hostOf(options));
  const faults = ts
    .getPreEmitDiagnostics(program)
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
  expect(faults).toEqual([]);
});

it('is what the plugin exports as it always did', () => {
  const own = read<{ exports: Record<string, string> }>('package.json');
  expect(own.exports['./till-client']).toBe('./till-client/index.js');
  // By the plugin's own rules, without all else that it has, which takes npm seconds to pack.
  const plugin = path.join(site, 'plugin');
  for (const name of ['package.json', 'till-client']) {
    fs.cpSync(path.join(ROOT, name), path.join(plugin, name), { recursive: true });
  }
  const names = pack(plugin).files.map((file) => file.path);
  expect(names.sort()).toEqual([
    'package.json',
    'till-client/README.md',
    'till-client/index.d.ts',
    'till-client/index.js',
    'till-client/types.d.ts',
  ]);
  const code = `
    import whole, { createTill, sign } from './till-client/index.js';
    console.log(JSON.stringify([Object.keys(whole).sort(), whole.createTill === createTill,
      sign({ secret: 's', timestamp: 1, body: '{}' })]));`;
  const { stdout } = run(process.execPath, ['--input-type=module', '-e', code]);
  expect(JSON.parse(stdout)).toEqual([
    EXPORTS,
    true,
    expect.stringMatching(/^sha256=[0-9a-f]{64}$/),
  ]);
});
