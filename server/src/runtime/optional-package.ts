import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { errorText } from './text';

/** Packages for some options, with supported versions. As optional peers, npm would refuse other installed versions. */
const SUPPORTED = { bullmq: [5, 6], ioredis: [5, 6] } as const satisfies Record<
  string,
  readonly number[]
>;

export type OptionalPackage = keyof typeof SUPPORTED;

/** From the site's folder, where sites install them; a linked plugin may find others. Bundlers ignore dynamic names. */
const fromSite = (): NodeJS.Require => createRequire(path.resolve('package.json'));

/** The installed package. @throws if it is not installed */
export const loadInstalled = (name: OptionalPackage): unknown => fromSite()(name);

const isMissing = (error: unknown): boolean =>
  ['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND'].includes(
    String((error as { code?: unknown } | null)?.code)
  );

/** The installed version; null if unknown. */
const installedVersion = (name: OptionalPackage): string | null => {
  try {
    const manifest = fs.readFileSync(fromSite().resolve(`${name}/package.json`), 'utf8');
    return String((JSON.parse(manifest) as { version?: unknown }).version);
  } catch {
    return null;
  }
};

/** The fault of a package's version; null if it is supported or unknown. */
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
 * Loads packages for an `option`, such as `scheduler.engine is "bullmq"`.
 * @throws Error that says what was found, what is supported and what to install; the host then refuses to boot.
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
