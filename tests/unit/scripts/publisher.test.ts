import { readDocument } from '../docs/support/markdown';

/** The publisher's own facts get into every file, and nothing is published before. */

const load = () => import('../../../scripts/lib/publisher.mjs');

const ACME = {
  repository: 'https://github.com/acme/switchboard',
  author: 'Acme <dev@acme.example>',
};

it.each(['package.json', 'till-client/package.json'])('%s is filled in whole', async (file) => {
  const { filledIn, PLACEHOLDER, REPOSITORY } = await load();
  const filled = filledIn(readDocument(file).replaceAll(ACME.repository, REPOSITORY), ACME);
  expect(filled).not.toContain(PLACEHOLDER);
  const { author, homepage, repository, bugs } = JSON.parse(filled) as {
    author: string;
    homepage: string;
    repository: { url: string };
    bugs: { url: string };
  };
  expect(author).toMatch(/^\S/);
  expect(homepage).toMatch(/^https:\/\/[^/]+\/\S+#readme$/);
  expect(repository.url).toMatch(/^git\+https:\/\/\S+\.git$/);
  expect(bugs.url).toMatch(/^https:\/\/\S+\/issues$/);
});

it('links and pictures get the repository, and texts without one stay as they are', async () => {
  const { filledIn, REPOSITORY } = await load();
  const picture = `![One](${REPOSITORY}/raw/main/docs/logo.png) [two](${REPOSITORY}/blob/main/a.md#b)`;
  expect(filledIn(picture, ACME)).toBe(
    '![One](https://github.com/acme/switchboard/raw/main/docs/logo.png) [two](https://github.com/acme/switchboard/blob/main/a.md#b)'
  );
  expect(filledIn('Nothing here.', ACME)).toBe('Nothing here.');
});

it('a placeholder that is left is found, in whatever form', async () => {
  const { PLACEHOLDER, withPlaceholder } = await load();
  const texts = new Map([
    ['a.md', 'Well.'],
    ['b.md', `https://www.${PLACEHOLDER}/elsewhere`],
  ]);
  expect(withPlaceholder(texts)).toEqual(['b.md']);
});

it.each(['https://github.com/acme/switchboard/', 'https://github.com/acme/switchboard.git'])(
  'takes %s as the repository',
  async (given) => {
    const { repositoryOf } = await load();
    expect(repositoryOf(given)).toBe(ACME.repository);
  }
);

it.each([
  undefined,
  '',
  'acme/switchboard',
  'http://github.com/acme/switchboard',
  'https://github.com',
])('refuses %j as the repository', async (given) => {
  const { repositoryOf } = await load();
  expect(() => repositoryOf(given)).toThrow('address of the repository');
});

it.each([undefined, '', '<dev@acme.example>', 'Acme <dev>', 'Ac"me'])(
  'refuses %j as the author',
  async (given) => {
    const { authorOf } = await load();
    expect(() => authorOf(given)).toThrow('Give the author');
  }
);

it('publishing asks for it, also in the release, which publishes a tarball', () => {
  const { scripts } = JSON.parse(readDocument('package.json')) as {
    scripts: Record<string, string>;
  };
  expect(scripts.prepublishOnly).toBe('node scripts/fill-publisher.mjs --check');
  expect(readDocument('.github/workflows/release.yml')).toContain('run: npm run prepublishOnly');
});
