import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { ROOT, SITE_DIR } from './paths';
import type { Site } from './site';

const CLI = path.join(ROOT, 'node_modules/@strapi/strapi/bin/strapi.js');

/** Runs a command of the host's own in a site's folder, on the site's database, beside the site. */
const strapiCommand = async (site: Site, args: string[]): Promise<void> => {
  const env = await site.evaluate(() => ({ ...process.env }));
  try {
    await promisify(execFile)(process.execPath, [CLI, ...args], {
      cwd: SITE_DIR,
      env: { ...env, PORT: '0' },
      maxBuffer: 64 * 1024 * 1024,
      timeout: 120_000,
    });
  } finally {
    // The host leaves a log of each run where it ran.
    for (const name of fs.readdirSync(SITE_DIR)) {
      if (/^(export|import)_\d+\.log$/.test(name)) fs.rmSync(path.join(SITE_DIR, name));
    }
  }
};

/** `strapi export`: everything but files, as a plain archive. @returns its path. */
export const exportSite = async (site: Site, name: string): Promise<string> => {
  await strapiCommand(site, [
    'export',
    '--no-encrypt',
    '--no-compress',
    '--exclude',
    'files',
    '-f',
    name,
  ]);
  return `${name}.tar`;
};

/** `strapi import`: replaces the content of a site by an archive's. */
export const importInto = (site: Site, archive: string): Promise<void> =>
  strapiCommand(site, ['import', '--force', '--exclude', 'files', '-f', archive]);
