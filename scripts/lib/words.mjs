import { createRequire } from 'node:module';

const ts = createRequire(import.meta.url)('typescript');

/**
 * Words that a reader of the trade has to decode, each with the word to say instead. `comment` is
 * searched in comments, `name` among the words of an identifier; English that is private only as a
 * noun, such as "told", is refused in names alone.
 */
const WORDS = [
  { comment: /\bdear(er|est)?\b/i, name: /^dear(er|est)?$/, say: 'expensive' },
  { comment: /\bmend(s|ed|ing)?\b/i, name: /^mend(s|ed|ing)?$/, say: 'fix, repair' },
  { comment: /\banew\b/i, name: /^anew$/, say: 'again, new' },
  { comment: /\bwhoever\b/i, name: /^whoever$/, say: 'anyone who, the caller, the user' },
  { comment: /\bbeside\b/i, name: /^beside$/, say: 'next to, with, at the same time as' },
  { comment: /\bmanner(s|ly)\b/i, name: /^manner(s|ly)$/, say: 'throttled, rate limit' },
  { comment: /\bcareful claims?\b/i, name: /^careful$/, say: 'claim under the group lock' },
  { comment: /\blaps(e|es|ed|ing)\b/i, name: /^laps(e|es|ed)$/, say: 'expire' },
  { comment: /\bhungry\b/i, name: /^hungry$/, say: 'has free slots, wants work' },
  { comment: /\baside\b/i, name: /^aside$/, say: 'on hold, paused, delayed' },
  { comment: /\bfar (times?|future)\b/i, name: /^far$/, say: 'a flag, a maximum' },
  { comment: /\bnobody's\b/i, name: /^nobodys$/, say: 'free, unowned, no one may' },
  { comment: /\bcom(e|es|ing) to nothing\b|\bcame to nothing\b/i, say: 'fail, have no effect' },
  { comment: /\b(stands?|stood|wait(s|ing)?) in line\b/i, say: 'wait, be queued' },
  { comment: /\barrivals\b/i, name: /^arrivals?$/, say: 'received records, new rows' },
  {
    comment:
      /\btries\b(?= (of|are|is|left|so|a|with|were)\b|[.,;])|\b(a|the|next|last|first|each|one|no) try\b/i,
    say: 'attempt',
  },
  { comment: /\b(for|of|to|by) who\b/i, say: 'for users who, for callers that' },
  { comment: /\b(told of|hears?|heard of)\b/i, say: 'notified, gets, published, last seen' },
  { comment: /\bas (they|it) (were|was)(?=[.,;:]|$)/i, say: 'unchanged' },
  { comment: /\bdo(es)? without\b/i, say: 'lacks, does not use' },
  {
    comment: /\b(null|undefined|empty|absent|false|none) where\b|^@throws\b.* where\b/i,
    say: 'if',
  },
  { comment: /\bmine\b/i, name: /^mine$/, say: 'own, of this process' },
  { name: /^gates?$/, say: 'lock, limiter, check' },
  { name: /^told$/, say: 'notified, reported, announced' },
  { name: /^asked$/, say: 'requested, requests, query' },
  { name: /^alone$/, say: 'single, only, exclusive' },
];

/** Names of routes, commands and services, which stay as they were published. */
const PUBLISHED = new Set(['mend', 'mended']);

/** Words that open a sentence as if its clause were a noun. */
const OPENING =
  /^(?:(?:What|Whatever|Whether|Where|The same|Of|Those|Who|Whom|Whose)\b|Has (?!no\b))/;
const SAY_AT_ONCE = 'begin with the subject: a noun, a verb, or "True if"';

/** @returns the file as TypeScript reads it, its declared names, and where its texts stand */
const parse = (file, text) => {
  const kind = file.endsWith('x') ? ts.ScriptKind.TSX : undefined;
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.ES2022, true, kind);
  const names = [];
  const texts = [];
  const visit = (node) => {
    if (ts.isIdentifier(node) && node.parent.name === node && !isImport(node.parent))
      names.push(node);
    else if (ts.isStringLiteralLike(node) || ts.isTemplateLiteralToken(node)) texts.push(node);
    else if (ts.isRegularExpressionLiteral(node) || ts.isJsxText(node)) texts.push(node);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return { source, names, texts: texts.map((node) => [node.getStart(source), node.end]) };
};

/** An access or an import repeats a name that is declared elsewhere. */
const isImport = (node) =>
  ts.isPropertyAccessExpression(node) || ts.isImportSpecifier(node) || ts.isQualifiedName(node);

const wordsOf = (name) =>
  name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[\s_$]+/);

const LINE_COMMENT = /^[ \t]*\/\//;

/**
 * The comments of a file: lines of `//` that follow each other are one.
 * @returns `start` and `end` are offsets, `text` has the marks of a comment still
 */
export const commentsOf = (file, text, parsed = parse(file, text)) => {
  const comments = [];
  const pattern = /\/\/.*|\/\*[\s\S]*?\*\//g;
  let next = 0;
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
    while (parsed.texts[next] && parsed.texts[next][1] <= match.index) next += 1;
    if (parsed.texts[next] && parsed.texts[next][0] <= match.index) {
      pattern.lastIndex = parsed.texts[next][1];
      continue;
    }
    const last = comments.at(-1);
    const end = match.index + match[0].length;
    const between = last && text.slice(last.end, match.index);
    const isLine = match[0].startsWith('//');
    const ownsLine = last && LINE_COMMENT.test(text.slice(text.lastIndexOf('\n', last.start) + 1));
    if (isLine && ownsLine && last.text.startsWith('//') && /^\n[ \t]*$/.test(between)) {
      last.end = end;
      last.text = text.slice(last.start, end);
    } else comments.push({ start: match.index, end, text: match[0] });
  }
  return comments;
};

const MARKS = /^[ \t]*(\/\*+|\*+\/|\*(?!\/)|\/\/)?[ \t]?|[ \t]*\*+\/$/g;

/**
 * The sentences of a comment, each with the line of the comment that it begins on.
 * @returns {{ line: number, text: string }[]}
 */
export const sentencesOf = (comment) => {
  const sentences = [];
  let open;
  comment.split('\n').forEach((raw, line) => {
    const text = raw.replace(MARKS, '').trim();
    if (text === '' || /^(@|- |\d+\. )/.test(text)) open = undefined;
    for (const part of text.split(/(?<=[.!?]\)?) (?=[A-Z`"(])/)) {
      if (part === '') continue;
      if (open) open.text += ` ${part}`;
      else sentences.push((open = { line, text: part.replace(/^(@returns |- )/, '') }));
      if (/[.!?]\)?$/.test(part)) open = undefined;
    }
  });
  return sentences;
};

/**
 * Words and openings of sentences that comments and names are to be without.
 * @returns {{ line: number, found: string, say: string }[]}
 */
export const findWords = (file, text) => {
  const parsed = parse(file, text);
  const lineOf = (offset) => parsed.source.getLineAndCharacterOfPosition(offset).line + 1;
  const found = [];
  for (const comment of commentsOf(file, text, parsed)) {
    for (const sentence of sentencesOf(comment.text)) {
      const line = lineOf(comment.start) + sentence.line;
      const opening = OPENING.exec(sentence.text);
      if (opening) found.push({ line, found: `"${opening[0].trim()} …"`, say: SAY_AT_ONCE });
      for (const word of WORDS) {
        const match = word.comment?.exec(sentence.text);
        if (match) found.push({ line, found: `"${match[0]}"`, say: word.say });
      }
    }
  }
  for (const name of parsed.names) {
    if (PUBLISHED.has(name.text)) continue;
    const word = WORDS.find((one) => wordsOf(name.text).some((part) => one.name?.test(part)));
    if (word) found.push({ line: lineOf(name.getStart()), found: name.text, say: word.say });
  }
  return found.sort((one, other) => one.line - other.line);
};
