import { readDocument } from '../docs/support/markdown';

/** `npm run version` writes the changelog as it has always been written. */

const load = () => import('../../../scripts/lib/changelog.mjs');

const CHANGELOG = `# Changelog

The format is that of Keep a Changelog.

## 0.2.0

- Before.
`;

const changeset = (text: string) => `---\n'strapi-plugin-switchboard': minor\n---\n\n${text}\n`;

it('a version comes before the others, the sections of all changesets put together', async () => {
  const { textOf, withRelease } = await load();
  const texts = [
    changeset('### Screens\n\n- One.\n- Two.'),
    changeset('A word on upgrading.\n\n### Fixed\n\n- Three,\n  in two lines.'),
    changeset('### Fixed\n\n- Four.\n\n### Screens\n\n- Five.'),
  ].map(textOf);
  expect(withRelease(CHANGELOG, '0.3.0', texts)).toBe(`# Changelog

The format is that of Keep a Changelog.

## 0.3.0

A word on upgrading.

### Screens

- One.
- Two.
- Five.

### Fixed

- Three,
  in two lines.
- Four.

## 0.2.0

- Before.
`);
});

it('a version is written once', async () => {
  const { withRelease } = await load();
  expect(() => withRelease(CHANGELOG, '0.2.0', ['- Again.'])).toThrow('has 0.2.0 already');
});

it('the changelog of this package is one that a version can be put into', async () => {
  const { withRelease } = await load();
  const before = readDocument('CHANGELOG.md');
  const after = withRelease(before, '99.0.0', ['- New.']);
  expect(after.replace('## 99.0.0\n\n- New.\n\n', '')).toBe(before);
  expect(after.indexOf('## 99.0.0')).toBe(before.search(/^## /m));
});

it('the version in package.json has a section', () => {
  const { version } = JSON.parse(readDocument('package.json')) as { version: string };
  expect(readDocument('CHANGELOG.md')).toContain(`\n## ${version}\n`);
});
