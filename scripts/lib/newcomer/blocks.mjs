import fs from 'node:fs';
import path from 'node:path';

/**
 * The blocks of code of a page, each with the comment right before it:
 * `<!-- add to config/server -->` or `<!-- run: make a key -->`.
 * @param {string} markdown
 * @returns {{ language: string, code: string, add: string | null, run: string | null }[]}
 */
export const blocksOf = (markdown) =>
  [
    ...markdown.matchAll(
      /(?:<!-- (?:add to (?<add>.+?)|run: (?<run>.+?)) -->\s+)?^```(?<language>\w*)\n(?<code>[\s\S]*?)^```$/gm
    ),
  ].map(({ groups: { language, code, add = null, run = null } }) => ({ language, code, add, run }));

const only = (blocks, what) => {
  if (blocks.length !== 1) throw new Error(`${what}: ${blocks.length} blocks, and not one`);
  return blocks[0].code;
};

/** The pages of the package that a project has installed, and what a newcomer looks for in them. */
export const pagesOf = (project) => {
  const folder = path.join(project, 'node_modules/strapi-plugin-switchboard');
  const read = (page) => blocksOf(fs.readFileSync(path.join(folder, page), 'utf8'));
  return {
    /** The command that a page has under this name. */
    toRun: (page, name) =>
      only(
        read(page).filter(({ run }) => run === name),
        `${page}, "${name}"`
      ),
    /** The one block of a page that has this text. */
    containing: (page, text) =>
      only(
        read(page).filter(({ code }) => code.includes(text)),
        `${page} with ${text}`
      ),
    /** The blocks that a page says to add, for a project in this language: `file` without extension. */
    toAdd: (page, extension) =>
      read(page).flatMap(({ code, add }) => {
        if (add === null) return [];
        const [file, key] = add.split(', ');
        if (path.extname(file) === '') return [{ file: `${file}${extension}`, key, code }];
        return path.extname(file) === extension ? [{ file, key, code }] : [];
      }),
  };
};
