// How the site searches. The page that is named for the question has to come first:
// tests/unit/docs/search.test.ts asks such questions.

/**
 * The part of a word that is the same in "rotate", "rotates", "rotated" and "rotating"; null for a
 * word that says nothing. It travels to the browser as text, so all that it needs is inside.
 * @param {string} term as written
 */
const processTerm = (term) => {
  const word = term.toLowerCase().replace(/['’]s?$/, '');
  if (/^(an?|and|are|as|at|be|by|can|do|does|for|how|i|in|is|it|its|my|of|on|or)$/.test(word))
    return null;
  if (/^(that|the|their|then|this|to|what|when|where|which|who|why|will|with|you|your)$/.test(word))
    return null;
  if (word.length < 4) return word;
  const single = word.replace(/ies$/, 'y').replace(/(?<![isu])s$/, '');
  const stem = single.replace(/(?<=...)(?:(?<=y)ing|ied|ing|ed|e)$/, (end) =>
    end === 'ied' ? 'y' : ''
  );
  return stem.replace(/([bdgmnprt])\1$/, '$1');
};

/** Words of a text; a name such as `webhooks.retryScheduleSeconds` is found by each of its own. */
const tokenize = (text) =>
  text
    .replace(/&[a-z]+;/g, ' ')
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .split(/[^\p{L}\p{N}'’]+/u)
    .filter((word) => word !== '');

const HEADING = /<h([1-6])[^>]*>(.*?)<a [^>]*href="#([^"]*)"[^>]*>.*?<\/a>\s*<\/h\1>/gs;
const withoutTags = (html) =>
  html
    .replace(/<(style|script)[\s\S]*?<\/\1>/g, '')
    .replace(/<[^>]*>/g, ' ')
    .trim();

/**
 * The sections of a page, each with the titles above its own. The list of all pages and the versions
 * of the changelog are left out: they name everything and answer nothing.
 */
const sectionsOf = (file, html) => {
  if (/[\\/]docs[\\/]index\.md$/.test(file)) return [];
  const isChangelog = /[\\/]docs[\\/]changelog\.md$/.test(file);
  const headings = [...html.matchAll(HEADING)].slice(0, isChangelog ? 1 : undefined);
  let titles = [];
  return headings.map((heading, index) => {
    const [{ length }, level, title, anchor] = heading;
    titles = [...titles.slice(0, Number(level) - 1), withoutTags(title)];
    const text = html.slice(heading.index + length, headings[index + 1]?.index);
    return { anchor, titles: titles.filter(Boolean), text: withoutTags(text) };
  });
};

/** Options of the local search of VitePress. */
export const searchOptions = {
  miniSearch: {
    options: { processTerm, tokenize },
    searchOptions: {
      prefix: true,
      fuzzy: (term) => (term.length > 4 ? 0.2 : false),
      weights: { prefix: 0.3, fuzzy: 0.1 },
      boost: { title: 8, titles: 3, text: 1 },
      // A page comes before a section of another one that is as good.
      boostDocument: (_id, _term, stored) => (stored.titles.length === 0 ? 1.3 : 1),
    },
    _splitIntoSections: sectionsOf,
  },
};
