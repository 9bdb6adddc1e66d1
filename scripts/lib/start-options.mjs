import { parseArgs } from 'node:util';

/** Engines that share the work of sending and processing: the database only, or a Redis too. */
export const ENGINES = ['database', 'bullmq'];
export const DEFAULT_REDIS = 'redis://127.0.0.1:6379';

const FLAGS = {
  fresh: { type: 'boolean', default: false },
  engine: { type: 'string', default: ENGINES[0] },
  help: { type: 'boolean', short: 'h', default: false },
};
const TAKES = `It takes --fresh, --engine ${ENGINES.join('|')} and --help.`;

/** Output of `npm start -- --help`. */
export const HELP = `npm start -- [--fresh] [--engine ${ENGINES.join('|')}]

Starts the playground: a Strapi site with the plugin, a receiver of its webhooks, and a till.

  --fresh            begins with an empty database, and a week of a shop in it
  --engine <name>    what shares the work among nodes: database (default), or bullmq, which needs
                     a Redis and the packages bullmq and ioredis
  --help             this text

Environment (and defaults):
  PORT, RECEIVER_PORT, TILL_PORT   where the three listen (1337, 4400, 4500)
  HOST                             on which address (127.0.0.1)
  PLAYGROUND_DATA                  the folder of the database (playground/.tmp)
  PLAYGROUND_SHOP=empty            a first start without the week
  PLAYGROUND_ADMIN_PASSWORD        the first administrator's password (a random one)
  REDIS_URL                        of --engine bullmq (${DEFAULT_REDIS})
  LOG_LEVEL                        what the site prints (warn)`;

/** `npm start --fresh` gives a flag to npm, which keeps it: the site would go on with its old data. */
const refuseFlagsOfNpm = (env) => {
  const kept = Object.keys(FLAGS).find((name) => name !== 'help' && env[`npm_config_${name}`]);
  if (!kept) return;
  const value = kept === 'engine' ? ` ${env.npm_config_engine}` : '';
  throw new Error(
    `npm kept --${kept} for itself. Two hyphens before it hand it on: npm start -- --${kept}${value}`
  );
};

const parse = (argv) => {
  try {
    return parseArgs({ args: argv, options: FLAGS, allowPositionals: true });
  } catch (error) {
    if (error.code === 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE' && argv.includes('--engine')) {
      throw new Error(`--engine needs a name: ${ENGINES.join(' or ')}.`);
    }
    const unknown = argv.find((one) => one.startsWith('-') && !(one.slice(2) in FLAGS));
    throw new Error(`npm start cannot take ${unknown ?? argv.join(' ')}. ${TAKES}`);
  }
};

const redisFrom = (url) => {
  if (/^rediss?:\/\/./.test(url) && URL.canParse(url)) return url;
  throw new Error('REDIS_URL is no address of a Redis, such as redis://127.0.0.1:6379.');
};

/**
 * Reads the options of `npm start`.
 * @param {string[]} argv  what follows the script's name
 * @param {Record<string, string | undefined>} env
 * @returns {{ help: boolean, fresh: boolean, engine: 'database' | 'bullmq', redis: string }}
 * @throws Error with a sentence for a person: an unknown flag or engine, no address of a Redis, or a
 *   flag that npm kept
 */
export const readStartOptions = (argv, env) => {
  refuseFlagsOfNpm(env);
  const { values, positionals } = parse(argv);
  if (positionals.length > 0) {
    throw new Error(`npm start cannot take ${positionals.join(' ')}. ${TAKES}`);
  }
  const { help, fresh, engine } = values;
  if (!ENGINES.includes(engine)) {
    throw new Error(`There is no engine "${engine}": --engine takes ${ENGINES.join(' or ')}.`);
  }
  const redis = engine === 'bullmq' ? redisFrom(env.REDIS_URL || DEFAULT_REDIS) : DEFAULT_REDIS;
  return { help, fresh, engine, redis };
};
