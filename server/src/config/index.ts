import type { Core } from '@strapi/strapi';
import { type Options, parseOptions } from './schema';

/** The plugin's `config` entry: the host merges `default` with the site's options, then validates. */
export const config = {
  default: {},
  validator(options: unknown): void {
    parseOptions(options);
  },
};

const parsed = new WeakMap<Core.Strapi, Options>();

/** The site's options with every default filled in. Parsed once a process. */
export const getOptions = (strapi: Core.Strapi): Options => {
  let options = parsed.get(strapi);
  if (!options) {
    options = parseOptions(strapi.config.get('plugin::switchboard'));
    parsed.set(strapi, options);
  }
  return options;
};

export type { Options } from './schema';
