import { readDocument } from '../docs/support/markdown';

/** How the newcomer of scripts/check-newcomer.mjs reads a page, and edits a configuration by it. */

const loadAdding = () => import('../../../scripts/lib/newcomer/add-to-config.mjs');
const loadReading = () => import('../../../scripts/lib/newcomer/blocks.mjs');

const squeezed = (text: string): string => text.replace(/\s+/g, ' ');

describe('an entry is added to what is there', () => {
  it.each([
    ['a function of a module', `const config = ({ env }) => ({ a: 1 });\nexport default config;`],
    ['a function', `export default ({ env }) => ({ a: 1 });`],
    [
      'a function with a return',
      `module.exports = ({ env }) => { const x = { y: 1 }; return { a: 1 }; };`,
    ],
    ['an object', `module.exports = { a: 1, };`],
    ['nothing before it', `export default () => ({});`],
  ])('in %s', async (_, source) => {
    const { addTo } = await loadAdding();
    const added = addTo(source, '// beside a\nb: { c: 2 },\n');
    expect(squeezed(added)).toMatch(/(\{|1 ?,) \/\/ beside a b: \{ c: 2 \}, \}/);
    // The second time it is there.
    expect(addTo(added, 'b: 3,')).toBe(added);
  });

  it('in the object of a property', async () => {
    const { addTo } = await loadAdding();
    const source = `const connections = { mysql: { pool: 1 }, sqlite: { client: 'sqlite' } };`;
    expect(squeezed(addTo(source, 'pool: {}', 'sqlite'))).toBe(
      `const connections = { mysql: { pool: 1 }, sqlite: { client: 'sqlite' , pool: {}, } };`
    );
  });

  it('or not at all, where there is no such object', async () => {
    const { addTo } = await loadAdding();
    expect(() => addTo('module.exports = 1;', 'a: 1')).toThrow('no object');
    expect(() => addTo('module.exports = {};', 'a: 1', 'sqlite')).toThrow('no object sqlite');
  });
});

describe('the pages say', () => {
  it('what is added where', async () => {
    const { blocksOf } = await loadReading();
    const adds = (page: string) => blocksOf(readDocument(page)).flatMap(({ add }) => add ?? []);
    expect(adds('README.md')).toEqual([]);
    expect(adds('docs/install.md')).toEqual([
      'config/plugins',
      'config/server',
      'config/admin',
      'config/database.ts, sqlite',
      'config/database.js, sqlite',
    ]);
  });

  it('what is run', async () => {
    const { blocksOf } = await loadReading();
    const runs = (page: string) => blocksOf(readDocument(page)).flatMap(({ run }) => run ?? []);
    expect(runs('docs/install.md')).toEqual(['make a key', 'build and start']);
    expect(runs('README.md')).toEqual([
      'see whether all is well',
      'create the webhook',
      'start the receiver',
      'send a test',
      'add a contact',
    ]);
  });
});
