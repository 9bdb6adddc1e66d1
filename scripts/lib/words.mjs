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
  { comment: /\b(told of|hears?|heard (of|from))\b/i, say: 'notified, gets, published, last seen' },
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

/**
 * Further words that texts for readers are to be without: values of translations, log lines, errors
 * and help. The words of comments above apply to them as well.
 */
const TEXT_WORDS = [
  { text: /\b(some|no)body\b/i, say: 'someone, a user, no one' },
  { text: /\b(?<!\bthere )(is|are|was|were) no (?!longer\b)/i, say: 'is not a, is not' },
  { text: /\bin vain\b/i, say: 'failed' },
  { text: /\b(come|comes|came|become|becomes|became) of (it|them|what)\b/i, say: 'the result' },
  { text: /\bof (its|their|one['’]s|your) own\b/i, say: 'its own, custom' },
  { text: /\b(go|goes|going|went) on\b(?! the\b)/i, say: 'continue' },
  { text: /\bsee to it\b/i, say: 'make sure' },
  { text: /\blook(ed (at|for)|ing for)\b/i, say: 'check, search, see' },
  { text: /\bends? with \d/i, say: 'Exit code: 0 if …' },
  { text: /\bis away\b/i, say: 'unreachable' },
  { text: /\bstands? (in|twice|still|alone|beside)\b/i, say: 'appears, waits, is alone' },
  {
    text: /\b(is|are|was|were) to (be|do|follow|go|have|keep|report|say|send|stay|work)\b/i,
    say: 'should, must',
  },
  { text: /\bwants? (a|an|no|more|fewer|less)\b/i, say: 'needs' },
  { text: /\b(gave|given|gives) up\b/i, say: 'failed' },
  { text: /\bfor good\b|\bfor ever\b/i, say: 'permanently' },
  { text: /\b(this|on|next|another|last) (try|turn)\b|\bfor a try\b/i, say: 'attempt' },
  { text: /\bwhere (none|nothing|no|there is|it could)\b/i, say: 'if' },
  { text: /\bas (it|they) (is|are|came|come|stay)(?=[.,;:]|$)/i, say: 'unchanged' },
  {
    text: /\bwhat (waits|waited|follows|fails|failed|is due|was missed|was sent)\b/i,
    say: 'a noun',
  },
  { text: /\bdoes not (fit|hold)\b/i, say: 'is wrong, does not match' },
  { text: /\bthose (asked|told|chosen|called)\b/i, say: 'a noun' },
  { text: /\bof which no\b|\bof whom\b/i, say: 'without, that' },
  { text: /\bbroke down\b/i, say: 'failed' },
  { text: /\bturns? (it|them) away\b/i, say: 'blocks, refuses' },
];

/** Words of the code and the API for which the panel has another one. */
const SCREEN_WORDS = [
  { text: /\bGTINs?\b/, say: 'barcode' },
  { text: /\bpieces?\b/i, say: 'unit' },
  { text: /\bby hand\b/i, say: 'by a user, manually' },
  { text: /\boutgoing events?\b/i, say: 'delivery' },
  { text: /\bunknown (value|item|product|SKU)s?\b/i, say: 'unmapped' },
  { text: /\b(till|POS) connections?\b/i, say: 'till' },
  { text: /\btr(y|ies)\b(?! again\b)(?! .*\?)/i, say: 'attempt' },
  { text: /\bsen(d|t) again\b/i, say: 'resend' },
  { text: /\bposts?\b/i, say: 'request' },
  { text: /\bdoes not know\b/i, say: 'unknown' },
];
const WORDS_OF_A_SCREEN_SENTENCE = 20;

/** Names of routes, commands and services, which stay as they were published. */
const PUBLISHED = new Set(['mend', 'mended']);

/** Words that open a sentence as if its clause were a noun. */
const OPENING =
  /^(?:(?:What|Whatever|Whether|Where|Of|Those|Who|Whom|Whose) (?!to\b)|The same(?! [a-z]+s\b)|Has (?!no\b))/;
const SAY_AT_ONCE = 'begin with the subject: a noun, a verb, or "True if"';

/** As such a sentence also begins in a text; a question may. */
const isBadOpening = (sentence) => OPENING.test(sentence) && !sentence.endsWith('?');

/** @returns the file as TypeScript reads it, its declared names, and where its texts stand */
const parse = (file, text) => {
  const kind = file.endsWith('x') ? ts.ScriptKind.TSX : undefined;
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.ES2022, true, kind);
  const names = [];
  const texts = [];
  const messages = [];
  const visit = (node) => {
    if (ts.isStringLiteralLike(node) && !isPath(node.parent)) messages.push([node, node.text]);
    else if (ts.isTemplateExpression(node)) messages.push([node, templateText(node)]);
    if (ts.isIdentifier(node) && node.parent.name === node && !isImport(node.parent))
      names.push(node);
    else if (ts.isStringLiteralLike(node) || ts.isTemplateLiteralToken(node)) texts.push(node);
    else if (ts.isRegularExpressionLiteral(node) || ts.isJsxText(node)) texts.push(node);
    ts.forEachChild(node, visit);
  };
  visit(source);
  const ranges = texts.map((node) => [node.getStart(source), node.end]);
  return { source, names, texts: ranges, messages };
};

const isPath = (node) =>
  ts.isImportDeclaration(node) || ts.isExportDeclaration(node) || ts.isLiteralTypeNode(node);

/** A template's text, each value in it as "…". */
const templateText = ({ head, templateSpans }) =>
  head.text + templateSpans.map(({ literal }) => `…${literal.text}`).join('');

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

/** Three words in a row, the last ones in lower case: neither a key nor a list of names. */
const IS_SENTENCE = /[A-Za-z…"'`)][,:;]? [a-z…"'`(]+ [a-z…"'`(]/;
const IS_SQL =
  /\b(?:SELECT|UPDATE|INSERT|DELETE|FROM|WHERE|CASE|JOIN|COALESCE|ON CONFLICT|ORDER BY|IS NOT NULL|AS)\b/;

/** The sentences of a message; its paragraphs and the lines of its options are apart. */
const sentencesOfText = (text) =>
  text
    .split(/\n(?=\s)/)
    .flatMap((part) =>
      part
        .replace(/\s+/g, ' ')
        .trim()
        .split(/(?<=[.!?:]["”)]?) (?=[A-Z`"(“])/)
    )
    .filter((part) => part !== '');

/** Names of options, keys and files, which are no words of the text. */
const NAMES = /--[\w-]+|"[\w.-]+"|`[^`]*`/g;

const findInSentence = (written, words) => {
  const sentence = written.replace(NAMES, '…');
  const found = [];
  if (isBadOpening(sentence))
    found.push({ found: `"${OPENING.exec(sentence)[0].trim()} …"`, say: SAY_AT_ONCE });
  for (const { comment, text = comment, say } of words) {
    const match = text?.exec(sentence);
    if (match) found.push({ found: `"${match[0]}"`, say });
  }
  return found;
};

/**
 * Words and openings that messages are to be without: log lines, errors and help in code.
 * @returns {{ line: number, found: string, say: string }[]}
 */
export const findInMessages = (file, text) => {
  const { source, messages } = parse(file, text);
  return messages
    .filter(([, message]) => IS_SENTENCE.test(message) && !IS_SQL.test(message))
    .flatMap(([node, message]) => {
      const line = source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1;
      return sentencesOfText(message).flatMap((sentence) =>
        findInSentence(sentence, [...WORDS, ...TEXT_WORDS]).map((one) => ({ line, ...one }))
      );
    });
};

const FENCE = /^\s*(```|~~~)/;
/** A heading, an item of a list, a row of a table, an empty line: what comes before has ended. */
const BEGINS_A_BLOCK = /^\s*(#{1,6} |[-*+] |\d+\. |\||>|$)/;
const TABLE_LINE = /^[\s|:-]+$/;

/** Markdown as a reader sees it: links without targets, no marks, no comments. */
const plain = (line) =>
  line
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/<[^>]+>/g, '')
    .replace(/^\s*(#{1,6} |[-*+] |\d+\. |> )/, '')
    .replace(/\*|(?<!\w)_|_(?!\w)/g, '');

/** The blocks of text of a page, each with its first line: paragraphs, items, cells, headings. */
const blocksOf = (markdown) => {
  const blocks = [];
  let isCode = false;
  let isOpen = false;
  markdown
    .replace(/<!--[\s\S]*?-->/g, (comment) => comment.replace(/[^\n]/g, ''))
    .split('\n')
    .forEach((raw, index) => {
      if (FENCE.test(raw)) isCode = !isCode;
      if (isCode || FENCE.test(raw) || TABLE_LINE.test(raw)) {
        isOpen = false;
        return;
      }
      const isRow = /^\s*\|/.test(raw);
      const texts = isRow ? raw.split(/(?<!\\)\|/) : [raw];
      if (BEGINS_A_BLOCK.test(raw)) isOpen = false;
      for (const text of texts.map((one) => plain(one).trim()).filter(Boolean)) {
        if (isOpen) blocks.at(-1).text += ` ${text}`;
        else blocks.push({ line: index + 1, text });
        isOpen = !isRow && !/^\s*#/.test(raw);
      }
    });
  return blocks;
};

/**
 * Words and openings that a page is to be without; its code is not searched.
 * @returns {{ line: number, found: string, say: string }[]} `line` is that of the paragraph
 */
export const findInMarkdown = (markdown) =>
  blocksOf(markdown).flatMap(({ line, text }) =>
    sentencesOfText(text).flatMap((sentence) =>
      findInSentence(sentence, [...WORDS, ...TEXT_WORDS]).map((one) => ({ line, ...one }))
    )
  );

/** Keys of OpenAPI and AsyncAPI that people read. */
const PROSE = new Set(['description', 'summary', 'title']);

/**
 * Searches the prose of a document for machines in the same way.
 * @param {string} text JSON, a key a line
 */
export const findInDescriptions = (text) =>
  text.split('\n').flatMap((raw, index) => {
    const [, key, value] = /^\s*"(\w+)": (".*"),?$/.exec(raw) ?? [];
    if (!PROSE.has(key)) return [];
    return findInMarkdown(JSON.parse(value)).map((one) => ({ ...one, line: index + 1 }));
  });

/** A message with the last of each choice that it offers: "one {# item} other {# items}". */
const longestForm = (message) => {
  let form = message;
  for (let before; before !== form;) {
    before = form;
    form = form.replace(/\{\w+, plural,[^{}]*(?:\{[^{}]*\}[^{}]*?)*other \{([^{}]*)\}\}/g, '$1');
    form = form.replace(/\{\w+(?:, number)?\}/g, '…');
  }
  return form;
};

/**
 * Words, openings and long sentences that the texts of the panel are to be without.
 * @param {string} text a file of translations: JSON, a text a line
 * @returns {{ line: number, found: string, say: string }[]}
 */
export const findInTranslations = (text) => {
  const lines = text.split('\n');
  return Object.entries(JSON.parse(text)).flatMap(([key, message]) => {
    const line = lines.findIndex((one) => one.includes(`${JSON.stringify(key)}:`)) + 1;
    return sentencesOfText(longestForm(message)).flatMap((sentence) => {
      const found = findInSentence(sentence, [...WORDS, ...TEXT_WORDS, ...SCREEN_WORDS]);
      const count = sentence.split(' ').length;
      if (count > WORDS_OF_A_SCREEN_SENTENCE)
        found.push({ found: `a sentence of ${count} words`, say: 'at most 20' });
      return found.map((one) => ({ line, ...one }));
    });
  });
};

/**
 * Words and openings of sentences that comments and names are to be without.
 * @param {{ withNames?: boolean }} options `withNames: false` reads comments only
 * @returns {{ line: number, found: string, say: string }[]}
 */
export const findWords = (file, text, { withNames = true } = {}) => {
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
  for (const name of withNames ? parsed.names : []) {
    if (PUBLISHED.has(name.text)) continue;
    const word = WORDS.find((one) => wordsOf(name.text).some((part) => one.name?.test(part)));
    if (word) found.push({ line: lineOf(name.getStart()), found: name.text, say: word.say });
  }
  return found.sort((one, other) => one.line - other.line);
};
