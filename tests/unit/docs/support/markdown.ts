import fs from 'node:fs';
import path from 'node:path';

export const ROOT = path.resolve(__dirname, '../../../..');

export const readDocument = (file: string): string =>
  fs.readFileSync(path.join(ROOT, file), 'utf8');

/** Text without its white space: formatting is not what these tests are about. */
export const squeezed = (text: string): string => text.replace(/\s+/g, '');

export interface CodeBlock {
  language: string;
  code: string;
  /** The file named by a comment `<!-- from … -->` right before the block. */
  from: string | null;
}

export const codeBlocks = (markdown: string): CodeBlock[] =>
  [...markdown.matchAll(/(?:<!-- from (\S+) -->\s+)?^```(\w*)\n([\s\S]*?)^```$/gm)].map(
    ([, from, language = '', code = '']) => ({ language, code, from: from ?? null })
  );

/** Text without its blocks of code. */
const prose = (markdown: string): string => markdown.replace(/^ *```[\s\S]*?^ *```$/gm, '');

/** The targets of all links and pictures. */
export const links = (markdown: string): string[] =>
  [...prose(markdown).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);

/** The targets of links, without those to other sites. */
export const localLinks = (markdown: string): string[] =>
  links(markdown).filter((target) => !/^[a-z]+:/.test(target));

/** The anchors that a host of Markdown makes of headings, and those written as such. */
export const anchors = (markdown: string): Set<string> =>
  new Set([
    ...[...prose(markdown).matchAll(/<a id="([^"]+)">/g)].map(([, id = '']) => id),
    ...[...prose(markdown).matchAll(/^#{1,6} (.+)$/gm)].map(([, title = '']) =>
      title
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, '')
        .trim()
        .replace(/\s/g, '-')
    ),
  ]);
