import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { type CommandOptions, runCommand } from '../../support/command';
import { makePluginSite, type PluginSite } from '../../support/plugin-site';

interface Created {
  name: string;
  folder: string;
  files: string[];
  events: string[];
  config: { file: string | null; lines: string[] };
}

let site: PluginSite;
beforeEach(() => (site = makePluginSite()));
afterEach(() => site.remove());

const run = (words: string[], options: CommandOptions = {}) =>
  runCommand(['create-plugin', ...words], { cwd: site.folder, ...options });
const create = async (name: string): Promise<Created> => {
  const { code, stdout, stderr } = await run([name, '--json']);
  expect([code, stderr]).toEqual([0, '']);
  return JSON.parse(stdout) as Created;
};
const written = () => fs.existsSync(path.join(site.folder, 'src'));

/** That the types of what it writes are right is in tests/samples/docs.test.ts. */
describe('the command create-plugin', () => {
  it('writes a plugin under its name, and nothing else', async () => {
    const { files, events, ...made } = await create('gift-cards');
    expect(made).toEqual({
      name: 'gift-cards',
      folder: 'src/plugins/gift-cards',
      config: {
        file: null,
        lines: [
          "'gift-cards': {",
          '  enabled: true,',
          "  resolve: './src/plugins/gift-cards',",
          '},',
        ],
      },
    });
    expect(events).toEqual(['gift-cards.item_added', 'gift-cards.item_removed']);
    expect(files).toContain('strapi-server.js');
    expect(fs.readdirSync(path.join(site.folder, 'src/plugins'))).toEqual(['gift-cards']);
    const texts = files.map((file) => site.read(`src/plugins/gift-cards/${file}`)).join('\n');
    expect(texts).not.toMatch(/plugin-name|Plugin title/);
    expect(JSON.parse(site.read('src/plugins/gift-cards/package.json'))).toMatchObject({
      strapi: { kind: 'plugin', name: 'gift-cards', displayName: 'Gift cards' },
    });
  });

  it.each([
    [{ 'plugins.ts': 'export default {};' }, 'config/plugins.ts'],
    [{ 'plugins.js': 'module.exports = {};' }, 'config/plugins.js'],
  ])('says where its lines go in a site with %j', async (config, file) => {
    site.remove();
    site = makePluginSite(config);
    const { stdout } = await run(['loyalty']);
    expect(stdout).toContain(`Add to the object that ${file} exports:\n\n  loyalty: {\n`);
    expect(stdout).toContain("resolve: './src/plugins/loyalty'");
    expect(site.read(file)).toBe(Object.values(config)[0]);
  });

  it('shows both whole files in a site without one', async () => {
    const { stdout } = await run(['loyalty']);
    expect(stdout).toMatch(/config\/plugins\.ts[^]*export default \(\) => \(\{\n {4}loyalty: \{/);
    expect(stdout).toMatch(
      /config\/plugins\.js[^]*module\.exports = \(\) => \(\{\n {4}loyalty: \{/
    );
  });

  it('overwrites nothing', async () => {
    await create('loyalty');
    fs.writeFileSync(path.join(site.folder, 'src/plugins/loyalty/strapi-server.js'), 'mine');
    const again = await run(['loyalty']);
    expect([again.code, again.stdout]).toEqual([2, '']);
    expect(again.stderr).toMatch(
      /^switchboard create-plugin: src\/plugins\/loyalty already exists; nothing was written\n$/
    );
    expect(site.read('src/plugins/loyalty/strapi-server.js')).toBe('mine');
  });

  it.each(['Loyalty', '../up', 'a/b', 'a_b', '1st', 'a--b', '-a', 'a-', '', 'ä', 'a'.repeat(51)])(
    'refuses the name %j',
    async (name) => {
      const refused = await run(['--', name]);
      expect([refused.code, refused.stdout]).toEqual([2, '']);
      expect(refused.stderr).toMatch(/^switchboard create-plugin: .*\n$/);
      expect(written()).toBe(false);
    }
  );

  it.each(['switchboard', 'upload', 'users-permissions'])(
    'refuses %s, which is another plugin’s',
    async (name) => {
      const refused = await run([name]);
      expect([refused.code, refused.stderr]).toEqual([
        2,
        expect.stringContaining('another plugin'),
      ]);
      expect(written()).toBe(false);
    }
  );

  it.each([[[]], [['a', 'b']], [['a', '--unknown']]])('refuses %j', async (words: string[]) => {
    const refused = await run(words);
    expect([refused.code, refused.stdout]).toEqual([2, '']);
    expect(refused.stderr).toMatch(/^switchboard create-plugin: .*\n$/);
    expect(written()).toBe(false);
  });

  it('works in the folder of a site alone', async () => {
    const elsewhere = fs.mkdtempSync(path.join(os.tmpdir(), 'switchboard-no-site-'));
    const refused = await run(['loyalty'], { cwd: elsewhere });
    fs.rmSync(elsewhere, { recursive: true });
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('not the folder')]);
  });

  it('explains itself', async () => {
    const { code, stdout } = await run(['--help']);
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/: switchboard create-plugin <name>/),
    ]);
    expect(JSON.parse((await run(['--help', '--json'])).stdout)).toHaveProperty('usage');
  });
});
