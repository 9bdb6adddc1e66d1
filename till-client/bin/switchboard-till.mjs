#!/usr/bin/env node
// switchboard-till verify <url>: exit 0 where the service keeps the contract, 1 where it does not
// or cannot be asked, 2 where the command is wrong.
import { verify } from '../verify.mjs';

const USAGE =
  'usage: POS_KEY=… POS_SECRET=… switchboard-till verify https://<site>/api/service-pos/v1';

const HELP = `${USAGE}

Holds the contract against a till service, with records of a connection in test mode.
Exit 0: all that was tried is kept; 1: something is not, or cannot be asked; 2: wrong command.`;

const misused = (message) => {
  console.error(`${message}; ${USAGE}`);
  return 2;
};

const isAddress = (text) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);

const main = async (args) => {
  const { POS_KEY: key, POS_SECRET: secret } = process.env;
  if (args.some((arg) => arg === '--help' || arg === '-h')) {
    console.log(HELP);
    return 0;
  }
  const option = args.find((arg) => arg.startsWith('-'));
  if (option !== undefined) return misused(`there is no option ${option}`);
  const [command, url, ...more] = args;
  if (command === undefined) return misused('no command');
  if (command !== 'verify') return misused(`there is no command ${command}`);
  if (url === undefined) return misused('no address');
  if (more.length > 0) return misused(`${more[0]} is too much`);
  if (!isAddress(url)) return misused(`${url} is no http address`);
  if (!key?.trim() || !secret?.trim()) return misused('POS_KEY and POS_SECRET are not set');
  return (await verify({ url, key, secret, say: console.log })) ? 0 : 1;
};

process.exitCode = await main(process.argv.slice(2));
