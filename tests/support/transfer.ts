import fs from 'node:fs';
import path from 'node:path';
import { runHostCommand } from './command';
import { SITE_DIR } from './paths';
import type { Site } from './site';

/** Runs a command of the host's own on a site's database, beside the site. */
const strapiCommand = async (site: Site, words: string[]): Promise<void> => {
  try {
    const { code, stdout, stderr } = await runHostCommand(words, site.env());
    if (code !== 0) throw new Error(`strapi ${words.join(' ')}: ${stdout}${stderr}`);
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
