'use strict';

const { parseArgs } = require('node:util');
const { createOutput } = require('./output');

/** A message for the user of the command; shown as one line, without a stack trace. */
class CommandError extends Error {}

const COMMON = { help: { type: 'boolean' }, json: { type: 'boolean' } };

/**
 * The commands by their words. Each file exports `summary`, `usage` (the help's text), `options` for
 * `parseArgs` besides the common ones, and `run(values, output)`, which resolves with the exit code.
 * One that takes a word of its own names it in `argument`, and finds it in `values` by that name.
 */
const COMMANDS = {
  worker: () => require('./worker'),
  doctor: () => require('./doctor'),
  webhooks: () => require('./webhooks'),
  deliveries: () => require('./deliveries'),
  recover: () => require('./recover'),
  'copy-host-webhooks': () => require('./copy-host-webhooks'),
  'create-plugin': () => require('./create-plugin'),
  'stock rebuild': () => require('./stock-rebuild'),
  uninstall: () => require('./uninstall'),
};

const overview = () => {
  const width = Math.max(...Object.keys(COMMANDS).map((name) => name.length));
  const lines = Object.entries(COMMANDS).map(
    ([name, load]) => `  ${name.padEnd(width)}  ${load().summary}`
  );
  return [
    'Usage, in the folder of a Strapi site: switchboard <command> [options]',
    '',
    'Commands:',
    ...lines,
    '',
    'switchboard <command> --help says more. With --json, standard output is one JSON value.',
    '',
  ].join('\n');
};

const HELP = new Set(['--help', '-h', 'help']);

/** The longest name that the words begin with. */
const findCommand = (words) => {
  const leading = words.slice(0, 2).filter((word) => !word.startsWith('-'));
  for (let length = leading.length; length > 0; length -= 1) {
    const name = leading.slice(0, length).join(' ');
    if (Object.hasOwn(COMMANDS, name)) return { name, rest: words.slice(length) };
  }
  const known = Object.keys(COMMANDS).join(', ');
  if (leading.length === 0) throw new CommandError(`Which command? There are: ${known}`);
  throw new CommandError(`Unknown command "${leading.join(' ')}". There are: ${known}`);
};

const parseWords = (name, { argument, options }, args) => {
  const allowPositionals = argument !== undefined;
  try {
    return parseArgs({ args, options: { ...COMMON, ...options }, strict: true, allowPositionals });
  } catch (error) {
    // Its further sentences are about positional arguments, which few commands take.
    throw new CommandError(`switchboard ${name}: ${error.message.split('. ')[0]}`);
  }
};

const parseOptions = (name, command, args) => {
  const { values, positionals } = parseWords(name, command, args);
  const { argument } = command;
  if (argument === undefined || values.help) return values;
  const [word, extra] = positionals;
  if (word === undefined) throw new CommandError(`switchboard ${name}: <${argument}> is missing`);
  if (extra !== undefined)
    throw new CommandError(`switchboard ${name}: unexpected argument '${extra}'`);
  return { ...values, [argument]: word };
};

const oneLine = (error) => {
  const text = error?.message || error?.code || String(error);
  return text.split('\n')[0];
};

const execute = async (words, output) => {
  const help = (text, json) => {
    if (json) output.json({ usage: text });
    else output.result(text);
    return 0;
  };
  if (words.length > 0 && HELP.has(words[0])) return help(overview(), words.includes('--json'));
  const { name, rest } = findCommand(words);
  const command = COMMANDS[name]();
  const values = parseOptions(name, command, rest);
  if (values.help) return help(command.usage, values.json);
  return command.run(values, output);
};

/**
 * Runs the command that these words are. Never rejects.
 * @returns {Promise<number>} the exit code; 2 where it could not run
 */
const run = async (words) => {
  const output = createOutput();
  try {
    return await execute(words, output);
  } catch (error) {
    output.complain(oneLine(error));
    return 2;
  } finally {
    await output.flushed();
  }
};

module.exports = { CommandError, run };
