import type { Core } from '@strapi/strapi';
import { type Options, parseOptions } from './schema';

/** The plugin's `config` entry: the host merges `default` with the site's options, then validates. */
export const config = {
  default: {},
  validator: (options: unknown): Options => parseOptions(options),
};

/** Where `bin/` says what its process is for; nothing is there in a site's own processes. */
const COMMAND = 'switchboard-command';

/**
 * What a process of the command `switchboard` does of the site's work, whatever the options say: a
 * worker what it was started for, any other command nothing, because it loads the site to look into it.
 */
interface CommandProcess {
  sends: boolean;
  applies: boolean;
  /** Instead of `webhooks.concurrency`. */
  concurrency?: number;
}

const forCommand = (
  options: Options,
  { sends, applies, concurrency }: CommandProcess
): Options => ({
  ...options,
  webhooks: {
    ...options.webhooks,
    dispatch: sends,
    concurrency: concurrency ?? options.webhooks.concurrency,
  },
  pos: { ...options.pos, process: applies },
});

/** The site's options with every default filled in. */
export const readOptions = (strapi: Core.Strapi): Options => {
  const options = parseOptions(strapi.config.get('plugin::switchboard'));
  const command = strapi.config.get(COMMAND) as CommandProcess | undefined;
  return command ? forCommand(options, command) : options;
};

export type { Options } from './schema';
