import type { Core } from '@strapi/strapi';
import { type Options, parseOptions } from './schema';

/** The plugin's `config` entry: the host merges `default` with the site's options, then validates. */
export const config = {
  default: {},
  validator: (options: unknown): Options => parseOptions(options),
};

const parsed = new WeakMap<Core.Strapi, Options>();

/**
 * In a process of the command `switchboard` (`bin/`), which loads the site to look into it, nothing
 * is sent or applied, whatever the site's own nodes do.
 */
const withoutWork = (options: Options): Options => ({
  ...options,
  webhooks: { ...options.webhooks, dispatch: false },
  pos: { ...options.pos, process: false },
});

/** The site's options with every default filled in. Parsed once a process. */
export const getOptions = (strapi: Core.Strapi): Options => {
  let options = parsed.get(strapi);
  if (!options) {
    options = parseOptions(strapi.config.get('plugin::switchboard'));
    if (strapi.config.get('switchboard-command')) options = withoutWork(options);
    parsed.set(strapi, options);
  }
  return options;
};

export type { Options } from './schema';
