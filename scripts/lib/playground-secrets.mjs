import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { PLAYGROUND } from './paths.mjs';

const FILE = path.join(PLAYGROUND, '.env');

const random = () => crypto.randomBytes(24).toString('base64');

const NEEDED = {
  APP_KEYS: () => [random(), random()].join(','),
  ADMIN_JWT_SECRET: random,
  API_TOKEN_SALT: random,
  TRANSFER_TOKEN_SALT: random,
  ENCRYPTION_KEY: random,
  JWT_SECRET: random,
};

/**
 * The site's secrets in playground/.env, which the host reads. Made once: with other ones, what is
 * encrypted in the database could no longer be read. The file is not in git.
 */
export const writeMissingSecrets = () => {
  const before = fs.existsSync(FILE) ? fs.readFileSync(FILE, 'utf8') : '';
  const missing = Object.entries(NEEDED).filter(
    ([name]) => !process.env[name] && !new RegExp(`^${name}=.`, 'm').test(before)
  );
  if (missing.length === 0) return;
  const lines = missing.map(([name, make]) => `${name}=${make()}\n`).join('');
  const separator = before === '' || before.endsWith('\n') ? '' : '\n';
  fs.writeFileSync(FILE, before + separator + lines, { mode: 0o600 });
};
