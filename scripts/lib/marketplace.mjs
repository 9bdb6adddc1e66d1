/** The package's size as it is downloaded, and the largest file that the admin panel may load at once. */
export const PACKED_BYTES = 700_000;
export const CHUNK_BYTES = 60_000;

const KEYWORDS = ['strapi', 'strapi-plugin'];
const INSTALL_SCRIPTS = ['preinstall', 'install', 'postinstall', 'prepare'];
const LOGO_PIXELS = 256;

/** `>=20.19.0 <=26.x.x` as its two versions. */
const rangeOf = (engine) => /^>=(\d+)\.(\d+)\.\d+ <=(\S+)$/.exec(engine ?? '')?.slice(1) ?? [];

/** Node as the host has it: not newer than the host allows, and of a major version that it has. */
const enginesFaults = ({ engines = {} }, host) => {
  const [major, , newest] = rangeOf(engines.node);
  const [hostMajor, , hostNewest] = rangeOf(host.engines?.node);
  return major !== undefined && major === hostMajor && newest === hostNewest
    ? []
    : [`engines.node is ${engines.node}, the host's is ${host.engines?.node}`];
};

const peerFaults = ({ peerDependencies = {}, devDependencies = {} }) => {
  const [, major, minor] = /^\^(\d+)\.(\d+)\.\d+$/.exec(peerDependencies['@strapi/strapi']) ?? [];
  const [pinnedMajor, pinnedMinor] = (devDependencies['@strapi/strapi'] ?? '').split('.');
  return major !== undefined && major === pinnedMajor && Number(minor) <= Number(pinnedMinor)
    ? []
    : ['peerDependencies["@strapi/strapi"] is no caret range with the version that is tested'];
};

/** Faults of the package.json of a listed plugin. */
export const packageFaults = (own, host) => [
  ...['name', 'version', 'description', 'license', 'author', 'homepage']
    .filter((key) => !own[key])
    .map((key) => `package.json has no ${key}`),
  ...([own.repository, own.bugs].some((place) => !place?.url)
    ? ['package.json has no repository.url or bugs.url']
    : []),
  ...['name', 'displayName', 'description', 'kind']
    .filter((key) => !own.strapi?.[key])
    .map((key) => `package.json has no strapi.${key}`),
  ...(own.strapi?.kind === 'plugin' ? [] : ['strapi.kind is not plugin']),
  ...KEYWORDS.filter((word) => !own.keywords?.includes(word)).map(
    (word) => `keywords lack ${word}`
  ),
  ...INSTALL_SCRIPTS.filter((name) => own.scripts?.[name]).map(
    (name) => `the script ${name} would run where the package is installed`
  ),
  ...(own.publishConfig?.provenance === true && own.publishConfig.access === 'public'
    ? []
    : ['publishConfig wants access public and provenance true']),
  ...enginesFaults(own, host),
  ...peerFaults(own),
];

const patternOf = (line) =>
  new RegExp(
    `^${line
      .split(/(\*\*\/|\*)/)
      .map(
        (part) => ({ '**/': '(?:[^/]+/)*', '*': '[^/]*' })[part] ?? part.replace(/[.+]/g, '\\$&')
      )
      .join('')}$`
  );

/** The lines of a list of packed files, without its comments. */
export const linesOf = (list) => list.split('\n').filter((line) => line && !line.startsWith('#'));

/**
 * @param {{ path: string, size: number }[]} files as `npm pack --json` names them
 * @param {string[]} lines names with * and **
 */
export const packedFaults = (files, size, lines) => {
  const patterns = lines.map((line) => ({ line, pattern: patternOf(line) }));
  const chunks = files.filter(({ path }) => path.startsWith('dist/admin/'));
  return [
    ...files
      .filter(({ path }) => !patterns.some(({ pattern }) => pattern.test(path)))
      .map(({ path }) => `${path} is packed, and no line of packed-files.txt says so`),
    ...patterns
      .filter(({ pattern }) => !files.some(({ path }) => pattern.test(path)))
      .map(({ line }) => `nothing that is packed is ${line}`),
    ...(size > PACKED_BYTES ? [`${size} bytes packed, at most ${PACKED_BYTES}`] : []),
    ...chunks
      .filter((chunk) => chunk.size > CHUNK_BYTES)
      .map((chunk) => `${chunk.path} has ${chunk.size} bytes, at most ${CHUNK_BYTES}`),
  ];
};

/** @param {Buffer} png */
export const logoFaults = (png) => {
  const isPng = png.subarray(1, 4).toString('latin1') === 'PNG';
  const [width, height] = isPng ? [png.readUInt32BE(16), png.readUInt32BE(20)] : [0, 0];
  return width === height && width >= LOGO_PIXELS
    ? []
    : [`the logo is no square PNG of ${LOGO_PIXELS} pixels or more`];
};

/** @param {string} workflow the text of the workflow that publishes */
export const releaseFaults = (workflow) =>
  /^ {6}id-token: write$/m.test(workflow) && /npm publish .*--provenance/.test(workflow)
    ? []
    : ['the release workflow has no id-token: write, or publishes without --provenance'];
