import path from 'node:path';

export const ROOT = path.resolve(__dirname, '../..');
export const SITE_DIR = path.join(ROOT, 'tests/site');
/** Everything that tests write; ignored by git. */
export const SCRATCH = path.join(ROOT, '.tmp');
/** The native compiler, which takes a fraction of the other one's time. */
export const TYPESCRIPT = path.join(ROOT, 'node_modules/typescript-7/bin/tsc');
