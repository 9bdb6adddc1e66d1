import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { errorText } from './text';

/**
 * Packages that a site installs only for some of its options, with their supported versions. They are
 * no optional peers: npm would refuse the plugin next to a version that the site has for something else.
 */
const SUPPORTED = { bullmq: [5, 6], ioredis: [5, 6] } as const satisfies Record<
  string,
  readonly number[]
>;

export type OptionalPackage = keyof typeof SUPPORTED;

/**
 * From the site's folder, where a site installs them: the plugin may stand elsewhere, as one that is
 * linked, and find another version or none. No bundler reads such a name.
 */
const fromSite = (): NodeJS.Require => createRequire(path.resolve('package.json'));

/** The package as the site has it. @throws where it has none */
export const loadInstalled = (name: OptionalPackage): unknown => fromSite()(name);

const isMissing = (error: unknown): boolean =>
  ['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND'].includes(
    String((error as { code?: unknown } | null)?.code)
  );

/** The version that the site has; null if it cannot be told. */
const installedVersion = (name: OptionalPackage): string | null => {
  try {
    const manifest = fs.readFileSync(fromSite().resolve(`${name}/package.json`), 'utf8');
    return String((JSON.parse(manifest) as { version?: unknown }).version);
  } catch {
    return null;
  }
};

/** The fault of a package's version; null: none, or it cannot be told. */
export const versionFault = (
  name: OptionalPackage,
  version: string | null = installedVersion(name)
): string | null => {
  const majors: readonly number[] = SUPPORTED[name];
  if (version === null || majors.includes(Number.parseInt(version, 10))) return null;
  return `${name} is ${version}, and supported are ${majors.join(' and ')}`;
};

/** The command that installs packages. @param exact by their versions: a plain `npm install` may keep the range that a site has. */
export const installCommand = (names: readonly OptionalPackage[], exact: boolean): string => {
  const wanted = names.map((name) => (exact ? `${name}@${SUPPORTED[name].at(-1)}` : name));
  return `npm install ${wanted.join(' ')}`;
};

/**
 * Loads packages that an option of the site needs.
 * @param option what needs them, such as `scheduler.engine is "bullmq"`
 * @throws Error that says what was found, what is supported and what to install; the host then refuses
 * to boot.
 */
export const loadOptional = async (
  option: string,
  names: readonly OptionalPackage[],
  load: typeof loadInstalled = loadInstalled,
  versionOf: typeof installedVersion = installedVersion
): Promise<unknown[]> => {
  const refuse = (why: string, exact: boolean, cause?: unknown): Error =>
    new Error(
      `The plugin switchboard: ${option}, and ${why}. Run: ${installCommand(names, exact)}`,
      { cause }
    );
  const faults = names.flatMap((name) => versionFault(name, versionOf(name)) ?? []);
  if (faults.length > 0) throw refuse(faults.join('; '), true);
  try {
    return await Promise.all(names.map(async (name) => load(name)));
  } catch (error) {
    const why = isMissing(error)
      ? 'are not installed'
      : `could not be loaded (${errorText(error)})`;
    throw refuse(`its packages ${why}`, false, error);
  }
};
