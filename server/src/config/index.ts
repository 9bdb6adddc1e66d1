import type { Core } from '@strapi/strapi';
import { type Options, parseOptions } from './schema';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { env, importDefault } from '@strapi/utils';
import { FEATURE_IDS, type FeatureId } from '../../../shared/contracts/features';
import { isRecord } from '../runtime/text';

/** The key under which `bin/` puts its process's purpose; absent in a site's own processes. */
const COMMAND = 'switchboard-command';

/** Work of a `switchboard` command process, whatever the options say: only a worker sends or applies. */
interface CommandProcess {
  sends: boolean;
  applies: boolean;
  /** Instead of `webhooks.concurrency`. */
  concurrency?: number;
}

/** The site's options with every default filled in. */
export const readOptions = (strapi: Core.Strapi): Options => {
  const options = parseOptions(strapi.config.get('plugin::switchboard'));
  const command = strapi.config.get(COMMAND) as CommandProcess | undefined;
  if (!command) return options;
  const { sends, applies, concurrency = options.webhooks.concurrency } = command;
  // A worker has the machine to itself.
  const threads =
    options.webhooks.threads && Math.max(options.webhooks.threads, os.availableParallelism());
  return {
    ...options,
    webhooks: { ...options.webhooks, dispatch: sends, concurrency, threads },
    pos: { ...options.pos, process: applies },
  };
};

export type { Options } from './schema';

/** Keys of a declaration in `config/plugins` besides `config`, which has the plugin's options. */
const OF_THE_HOST = new Set(['enabled', 'resolve', 'config', 'isModule']);

/** This plugin's declaration in a file of plugins; the host keeps only its `config`. */
const declarationIn = (file: string): Record<string, unknown> => {
  if (!fs.existsSync(file)) return {};
  const given: unknown = importDefault(file);
  const plugins: unknown = typeof given === 'function' ? given({ env }) : given;
  const declared = isRecord(plugins) ? plugins.switchboard : undefined;
  return isRecord(declared) ? declared : {};
};

/** A line about options next to `enabled`, which the host ignores. */
export const misplaced = (strapi: Core.Strapi): string[] => {
  const folder = strapi.dirs.dist.config;
  const files = ['plugins.js', path.join('env', process.env.NODE_ENV ?? '', 'plugins.js')];
  let keys: string[];
  try {
    keys = files.flatMap((file) => Object.keys(declarationIn(path.join(folder, file))));
  } catch {
    // The host has read it a moment ago; a file that cannot be read twice is no reason not to boot.
    return [];
  }
  const named = [...new Set(keys)].filter((key) => !OF_THE_HOST.has(key));
  if (named.length === 0) return [];
  return [
    `${named.join(', ')} next to enabled in config/plugins has no effect: options belong inside config, as in switchboard: { enabled: true, config: { … } }`,
  ];
};

/** Options that mean nothing without a feature. */
const NEEDED_BY: Readonly<Record<FeatureId, readonly string[]>> = {
  crm: ['sources', 'forms', 'email'],
  pos: ['pos', 'stock'],
};

/** Sources that need no CRM. */
const ALWAYS = new Set(['entries', 'media']);

const isGiven = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  Object.keys(value).some((name) => !ALWAYS.has(name));

/** One line about each option that was given and has no effect, or no longer the one it had. */
export const ineffective = (strapi: Core.Strapi): string[] => {
  const given = strapi.config.get('plugin::switchboard') as Record<string, unknown>;
  const { features, webhooks } = readOptions(strapi);
  const lines = FEATURE_IDS.filter((id) => !features[id]).flatMap((id) =>
    NEEDED_BY[id]
      .filter((name) => isGiven(given[name]))
      .map((name) => `the option ${name} has no effect, because features.${id} is false`)
  );
  if (webhooks.client === 'undici') {
    lines.push('webhooks.client "undici" was removed, and "node" takes its place');
  }
  return lines;
};
