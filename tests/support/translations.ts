import fs from 'node:fs';
import path from 'node:path';

const FOLDER = path.resolve(__dirname, '../../admin/src/translations');

/** The files of a language: the screens' own texts, those about tills and stock, and those of the host's menus. */
export const TEXT_FILES = ['', 'tills/', 'menu/'] as const;

export const readTextFile = (
  part: (typeof TEXT_FILES)[number],
  language: string
): Record<string, string> =>
  JSON.parse(fs.readFileSync(path.join(FOLDER, part, `${language}.json`), 'utf8'));

/** Every text of a language by its key. */
export const readTexts = (language: string): Record<string, string> =>
  Object.assign({}, ...TEXT_FILES.map((part) => readTextFile(part, language)));
