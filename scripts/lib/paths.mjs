import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
export const PLAYGROUND = path.join(ROOT, 'playground');
/** Files that scripts and tests write; ignored by git. */
export const SCRATCH = path.join(ROOT, '.tmp');
