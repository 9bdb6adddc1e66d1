import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';

/** `unknown`: the host's default, and the system does not say whether anybody chose it. */
export type GivenNodeEnv = { given: string | null } | 'unknown';

export interface NodeEnvSources {
  /** What the process has now. */
  current: string | undefined;
  /** The environment that the process was started with; null where the system does not tell. */
  atStart: () => Record<string, string> | null;
  /** The site's `.env`, which the host reads; empty where there is none. */
  envFile: () => Record<string, string>;
}

const HOST_DEFAULT = 'development';

/**
 * The `NODE_ENV` that somebody set, in the environment or the site's `.env`. The host writes
 * `development` into `process.env` where nobody set it, before any plugin is loaded, so that the
 * variable alone does not tell a developer's machine from a live site that was started plainly.
 */
export function givenNodeEnv(sources: NodeEnvSources = systemSources): GivenNodeEnv {
  const { current, atStart, envFile } = sources;
  if (current !== HOST_DEFAULT) return { given: current || null };
  if (envFile().NODE_ENV === HOST_DEFAULT) return { given: HOST_DEFAULT };
  const started = atStart();
  if (started === null) return 'unknown';
  return { given: started.NODE_ENV === HOST_DEFAULT ? HOST_DEFAULT : null };
}

const readOrNull = (file: string): string | null => {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
};

/** `name=value`, each ended by NUL: what Linux keeps of a process's first environment. */
const parseProcEnviron = (text: string): Record<string, string> =>
  Object.fromEntries(
    text
      .split('\0')
      .map((pair) => /^([^=]+)=([\s\S]*)$/.exec(pair))
      .filter((match) => match !== null)
      .map(([, name = '', value = '']) => [name, value])
  );

const systemSources: NodeEnvSources = {
  get current() {
    return process.env.NODE_ENV;
  },
  atStart() {
    const text = readOrNull('/proc/self/environ');
    return text === null ? null : parseProcEnviron(text);
  },
  envFile: () => {
    const text = readOrNull(process.env.ENV_PATH || '.env');
    return text === null ? {} : (parseEnv(text) as Record<string, string>);
  },
};
