import { readDocument } from '../docs/support/markdown';

/** The newest Strapi 5 that a registry has whole, which the packed tarball is tried with. */

const load = () => import('../../../scripts/lib/newest-strapi.mjs');

const VERSIONS = ['5.9.0', '5.54.0', '5.55.1', '5.55.0', '5.60.0-beta.1', '4.26.0', '6.0.0'];
const packagesOf = (version: string) => ({
  '@strapi/core': version,
  '@strapi/admin': version,
  '@strapi/design-system': '2.2.4',
  vite: '5.4.0',
});

it('is the newest by number, no preview and no other major version', async () => {
  const { newestWhole } = await load();
  expect(newestWhole(VERSIONS, packagesOf, () => true)).toBe('5.55.1');
});

it('is an older one where a part of the newest is missing', async () => {
  const { newestWhole } = await load();
  const isThere = (name: string, version: string) =>
    name !== '@strapi/admin' || !version.startsWith('5.55.');
  expect(newestWhole(VERSIONS, packagesOf, isThere)).toBe('5.54.0');
});

it('asks only for the parts of the host', async () => {
  const { newestWhole } = await load();
  const asked: string[] = [];
  newestWhole(VERSIONS, packagesOf, (name, version) => asked.push(`${name}@${version}`) > 0);
  expect(asked).toEqual(['@strapi/core@5.55.1', '@strapi/admin@5.55.1']);
});

it('is none where the registry answers nothing', async () => {
  const { newestWhole } = await load();
  expect(newestWhole([], packagesOf, () => true)).toBeUndefined();
  expect(
    newestWhole(
      VERSIONS,
      () => ({}),
      () => true
    )
  ).toBeUndefined();
});

it('is one that the plugin says it runs with', () => {
  const { peerDependencies, devDependencies } = JSON.parse(readDocument('package.json')) as Record<
    string,
    Record<string, string>
  >;
  expect(peerDependencies!['@strapi/strapi']).toBe(`^${devDependencies!['@strapi/strapi']}`);
});
