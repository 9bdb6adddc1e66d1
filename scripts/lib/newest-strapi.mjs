import { spawnSync } from 'node:child_process';

const MAJOR = 5;

const byNumber = (left, right) => {
  const [a, b] = [left, right].map((version) => version.split('.').map(Number));
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
};

/**
 * The newest released version of Strapi 5 of which the registry has every part. A mirror may have a
 * release's first packages before its last.
 * @param {string[]} versions every version of @strapi/strapi
 * @param {(version: string) => Record<string, string>} packagesOf the dependencies of one
 * @param {(name: string, version: string) => boolean} isThere
 */
export const newestWhole = (versions, packagesOf, isThere) =>
  versions
    .filter((version) => new RegExp(`^${MAJOR}\\.\\d+\\.\\d+$`).test(version))
    .sort(byNumber)
    .reverse()
    .find((version) => {
      const packages = Object.entries(packagesOf(version));
      // The host's own parts have exactly its version.
      const own = packages.filter(
        ([name, wanted]) => name.startsWith('@strapi/') && wanted === version
      );
      return own.length > 0 && own.every(([name, wanted]) => isThere(name, wanted));
    });

/** The answer of the registry, undefined if it has no such package or version. */
const view = (...args) => {
  const { stdout, stderr } = spawnSync('npm', ['view', ...args, '--json'], {
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  const answer = stdout.trim() ? JSON.parse(stdout) : undefined;
  if (!answer?.error) return answer;
  if (answer.error.code === 'E404') return undefined;
  throw new Error(`npm view ${args.join(' ')}: ${answer.error.summary ?? stderr}`);
};

/** Asks npm's registry. @param {string} installed a version that is whole @returns {string} the version */
export const findNewestStrapi = (installed) => {
  const found = newestWhole(
    view('@strapi/strapi', 'versions') ?? [],
    (version) => view(`@strapi/strapi@${version}`, 'dependencies') ?? {},
    (name, version) => version === installed || view(`${name}@${version}`, 'version') === version
  );
  if (!found) throw new Error('The registry has no version of Strapi 5 whole.');
  return found;
};
