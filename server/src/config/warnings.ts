import fs from 'node:fs';
import path from 'node:path';
import type { Core } from '@strapi/strapi';
import { env, importDefault } from '@strapi/utils';
import { isRecord } from '../runtime/text';

/** What a declaration in `config/plugins` has besides the plugin's options, which are in `config`. */
const OF_THE_HOST = new Set(['enabled', 'resolve', 'config', 'isModule']);

/** What a file of plugins says of this one; the host keeps nothing but `config` of it. */
const declarationIn = (file: string): Record<string, unknown> => {
  if (!fs.existsSync(file)) return {};
  const given: unknown = importDefault(file);
  const plugins: unknown = typeof given === 'function' ? given({ env }) : given;
  const declared = isRecord(plugins) ? plugins.switchboard : undefined;
  return isRecord(declared) ? declared : {};
};

/** The keys of a declaration that do nothing where they are. */
export const misplacedKeys = (declaration: object): string[] =>
  Object.keys(declaration).filter((key) => !OF_THE_HOST.has(key));

/** A line about options that stand beside `enabled`, where the host looks at none. */
export const misplaced = (strapi: Core.Strapi): string[] => {
  const folder = strapi.dirs.dist.config;
  const files = ['plugins.js', path.join('env', process.env.NODE_ENV ?? '', 'plugins.js')];
  let keys: string[];
  try {
    keys = files.flatMap((file) => misplacedKeys(declarationIn(path.join(folder, file))));
  } catch {
    // The host has read it a moment ago; a file that cannot be read twice is no reason not to boot.
    return [];
  }
  if (keys.length === 0) return [];
  const named = [...new Set(keys)].join(', ');
  return [
    `${named} beside enabled in config/plugins has no effect: options belong inside config, as in switchboard: { enabled: true, config: { … } }`,
  ];
};
