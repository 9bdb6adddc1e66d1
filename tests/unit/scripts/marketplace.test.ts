import fs from 'node:fs';
import path from 'node:path';
import { readDocument, ROOT } from '../docs/support/markdown';

/** What `npm run verify` asks of the package beside what the host's own tool does. */

const load = () => import('../../../scripts/lib/marketplace.mjs');

type Package = Record<string, unknown>;

const own = (): Package => JSON.parse(readDocument('package.json')) as Package;
const host = JSON.parse(readDocument('node_modules/@strapi/strapi/package.json')) as Package;

it('package.json has what is asked for', async () => {
  const { packageFaults } = await load();
  expect(packageFaults(own(), host)).toEqual([]);
});

it.each<[string, Package]>([
  ['no author', { author: undefined }],
  ['no licence', { license: undefined }],
  ['no repository', { repository: undefined }],
  ['no place for bugs', { bugs: {} }],
  ['no keyword', { keywords: ['webhooks'] }],
  ['no kind', { strapi: { name: 'a', displayName: 'A', description: 'B' } }],
  ['a script that runs at an install', { scripts: { postinstall: 'node x.js' } }],
  ['no provenance', { publishConfig: { access: 'public' } }],
  ['a Node that the host does not take', { engines: { node: '>=20.19.0 <=99.x.x' } }],
  ['an older Node than the host', { engines: { node: '>=18.0.0 <=26.x.x' } }],
  ['another major version of the host', { peerDependencies: { '@strapi/strapi': '^4.0.0' } }],
  ['a host newer than the tested one', { peerDependencies: { '@strapi/strapi': '^5.999.0' } }],
  ['a host of any version', { peerDependencies: { '@strapi/strapi': '*' } }],
])('%s is a fault', async (_what, change) => {
  const { packageFaults } = await load();
  expect(packageFaults({ ...own(), ...change }, host).length).toBeGreaterThan(0);
});

describe('the list of packed files', () => {
  const files = ['package.json', 'docs/a.md', 'dist/types/a/b/c.d.ts', 'dist/admin/i.mjs'].map(
    (name) => ({ path: name, size: 1000 })
  );
  const lines = ['package.json', 'docs/*.md', 'dist/types/**/*.d.ts', 'dist/admin/*.mjs'];

  it('is well where each file has a line and each line a file', async () => {
    const { packedFaults } = await load();
    expect(packedFaults(files, 1000, lines)).toEqual([]);
  });

  it.each(['.env', 'docs/screens/a.md', 'docs/a.md.map', 'server/src/index.ts'])(
    'finds %s, which nobody listed',
    async (name) => {
      const { packedFaults } = await load();
      expect(packedFaults([...files, { path: name, size: 1 }], 1000, lines)).toEqual([
        `${name} is packed, and no line of packed-files.txt says so`,
      ]);
    }
  );

  it('finds a line that nothing answers to', async () => {
    const { packedFaults } = await load();
    expect(packedFaults(files, 1000, [...lines, 'LICENSE'])).toEqual([
      'nothing that is packed is LICENSE',
    ]);
  });

  it('has an end: 700 kB in all, 60 kB a file of the admin panel', async () => {
    const { packedFaults } = await load();
    const heavy = files.map((file) => ({ ...file, size: 60_001 }));
    expect(packedFaults(heavy, 700_001, lines)).toEqual([
      '700001 bytes packed, at most 700000',
      'dist/admin/i.mjs has 60001 bytes, at most 60000',
    ]);
    const light = files.map((file) => ({ ...file, size: 60_000 }));
    expect(packedFaults(light, 700_000, lines)).toEqual([]);
  });

  it('names what is in the repository', async () => {
    const { linesOf } = await load();
    const named = linesOf(readDocument('scripts/packed-files.txt'));
    const fixed = named.filter((line) => !line.includes('*') && !line.startsWith('dist/'));
    expect(fixed.filter((line) => !fs.existsSync(path.join(ROOT, line)))).toEqual([]);
  });
});

it('the logo is a square picture', async () => {
  const { logoFaults } = await load();
  const png = fs.readFileSync(path.join(ROOT, 'docs/logo.png'));
  expect(logoFaults(png)).toEqual([]);
  const oblong = Buffer.from(png);
  oblong.writeUInt32BE(300, 16);
  expect(logoFaults(oblong)).toHaveLength(1);
  expect(logoFaults(Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'))).toHaveLength(1);
});

it('the release workflow proves where the package was made', async () => {
  const { releaseFaults } = await load();
  const workflow = readDocument('.github/workflows/release.yml');
  expect(releaseFaults(workflow)).toEqual([]);
  expect(releaseFaults(workflow.replace('id-token: write', 'id-token: none'))).toHaveLength(1);
  expect(releaseFaults(workflow.replace(' --provenance', ''))).toHaveLength(1);
});
