import { readTextFile, TEXT_FILES } from '../../support/translations';

/** `npm run lint` lists private words in comments, names, messages, documents and the panel's texts. */

const found = async (text: string, file = 'a.ts') => {
  const { findWords } = await import('../../../scripts/lib/words.mjs');
  return findWords(file, text).map(({ line, found: word }) => [line, word]);
};

it('a word is found in comments of each kind, by its line', async () => {
  const text = "// A dear look.\nconst url = 'http://dear';\n/**\n * Fine.\n * Then mended.\n */\n";
  expect(await found(text)).toEqual([
    [1, '"dear"'],
    [5, '"mended"'],
  ]);
});

it('each sentence counts, also the second one of a line and one over several lines', async () => {
  const text = '// Reads. What is left\n// stays. Whether it is so.\n// Those are\n// read.\n';
  expect(await found(text)).toEqual([
    [1, '"What …"'],
    [2, '"Whether …"'],
    [3, '"Those …"'],
  ]);
});

it('causative "has" and "where" in place of "if" count too', async () => {
  const text =
    '// Has the host wait.\n\n// Has no effect.\n\n// The id; null where there is none.\n';
  expect(await found(text)).toEqual([
    [1, '"Has …"'],
    [5, '"null where"'],
  ]);
});

it('such a word within a sentence is fine', async () => {
  expect(await found('/** Says what it is.\n * @returns whether it is so */')).toEqual([]);
});

it('names are searched where they are declared, word by word', async () => {
  const text = 'const isAlone = other.alone;\nconst aloneness = 1;\nfunction gateOf() {}\n';
  expect(await found(text)).toEqual([
    [1, 'isAlone'],
    [3, 'gateOf'],
  ]);
});

it('texts that look like comments are none, in JSX and templates too', async () => {
  const text =
    'const a = <p>What // dear</p>;\nconst b = `// What ${a /* What is it */} /* dear */`;\n';
  expect(await found(text, 'a.tsx')).toEqual([[2, '"What …"']]);
});

it('names stay where only comments are read', async () => {
  const { findWords } = await import('../../../scripts/lib/words.mjs');
  const text = 'const isAlone = true; // A dear look.\n';
  expect(findWords('a.ts', text, { withNames: false }).map((one) => one.found)).toEqual(['"dear"']);
});

it('a published name stays', async () => {
  expect(await found('const rebuild = ({ mend }) => mend;')).toEqual([]);
});

describe('messages in code', () => {
  const inMessages = async (text: string) => {
    const { findInMessages } = await import('../../../scripts/lib/words.mjs');
    return findInMessages('a.ts', text).map(({ line, found: word }) => [line, word]);
  };

  it('are searched in literals and in templates, by line', async () => {
    const text = "log('The site is away now');\n\nlog(`Somebody has deleted ${name} anew.`);\n";
    expect(await inMessages(text)).toEqual([
      [1, '"is away"'],
      [3, '"anew"'],
      [3, '"Somebody"'],
    ]);
  });

  it.each([
    ['What waits follows by itself.', ['"What …"', '"What waits"']],
    ['All is well. Whether it is so, the log says.', ['"Whether …"']],
    ['order.placed is no name of an event', ['"is no "']],
    ['A change by hand came to nothing.', ['"came to nothing"']],
    ['The other rows stay as they were.', ['"as they were"']],
    ['fix it, or mend the option', ['"mend"']],
    ['Ends with 0 where nothing is left.', ['"Ends with 0"', '"where nothing"']],
    ['Usage: doctor\n\n  --json  print what is\n\nEnds with 1 if not.', ['"Ends with 1"']],
  ])('%j is found', async (message, words) => {
    const found = (await inMessages(`log(${JSON.stringify(message)});`)).map(([, word]) => word);
    expect(found.sort()).toEqual(words.sort());
  });

  it.each([
    ['a question', 'What is the name of it?'],
    ['that something does not exist', 'there is no webhook of that name'],
    ['"no longer"', 'This till is no longer connected here.'],
    ['the name of an option', 'run it again with --mend to fix the levels'],
    ['a key of an answer', 'print "levels", "mended" and the differences'],
    ['SQL', 'SELECT a FROM b WHERE nobody is in vain'],
    ['a name', 'mend'],
    ['the name of a module', 'beside/the/path of-it'],
  ])('%s is fine', async (_what, message) => {
    expect(await inMessages(`log(${JSON.stringify(message)});`)).toEqual([]);
  });

  it('neither a type nor the path of an import is one', async () => {
    const text = "import a from 'made anew by them';\nlet b: 'made anew by them';\n";
    expect(await inMessages(text)).toEqual([]);
  });
});

describe('texts of the panel', () => {
  const inTexts = async (texts: Record<string, string>) => {
    const { findInTranslations } = await import('../../../scripts/lib/words.mjs');
    return findInTranslations(JSON.stringify(texts, null, 2)).map(({ line, found: word }) => [
      line,
      word,
    ]);
  };

  it('are searched by line, also for what has another name on screens', async () => {
    const texts = {
      a: 'Save',
      b: '{n, plural, one {# piece} other {# pieces}} of the GTIN',
      c: 'Nobody mapped it. What now?',
    };
    expect(await inTexts(texts)).toEqual([
      [3, '"GTIN"'],
      [3, '"pieces"'],
      [4, '"Nobody"'],
    ]);
  });

  it('have at most twenty words a sentence; of choices, the last one counts', async () => {
    const words = (count: number) => Array.from({ length: count }, () => 'word').join(' ');
    const choice = '{n, plural, =0 {no delivery} one {# delivery} other {# deliveries}}';
    expect(await inTexts({ a: `${words(20)}. Three more words.`, b: words(21) })).toEqual([
      [3, 'a sentence of 21 words'],
    ]);
    expect(await inTexts({ a: `${choice} ${words(18)}` })).toEqual([]);
  });

  it.each(TEXT_FILES)('of the English file %j are all fine', async (part) => {
    expect(await inTexts(readTextFile(part, 'en'))).toEqual([]);
  });
});

describe('documents', () => {
  const inPage = async (text: string) => {
    const { findInMarkdown } = await import('../../../scripts/lib/words.mjs');
    return findInMarkdown(text).map(({ line, found: word }) => [line, word]);
  };

  it('are searched in paragraphs, headings, items and cells, by line', async () => {
    const page = [
      '# What is dear',
      '',
      'A line, and a second',
      'one. **Whether** it is so.',
      '',
      '- Fine. [What follows](a.md).',
      '  2. Nobody *waits* in line.',
      '',
      '| Column | Meaning |',
      '| --- | --- |',
      '| `a` | Whether it is on |',
    ].join('\n');
    expect(await inPage(page)).toEqual([
      [1, '"What …"'],
      [1, '"dear"'],
      [3, '"Whether …"'],
      [6, '"What …"'],
      [6, '"What follows"'],
      [7, '"waits in line"'],
      [7, '"Nobody"'],
      [11, '"Whether …"'],
    ]);
  });

  it.each([
    ['code', '```sh\n# What is dear\n```'],
    ['code in a sentence', 'The log says `What is dear`.'],
    ['an address', '[A page](what-nobody-mends.md).'],
    ['a comment', '<!-- run: see whether\nsomebody is anew -->'],
    ['a question', '## What do I pay?'],
    ['an infinitive', '| What to do |'],
    ['a noun', '- **The same options** on each node.'],
    ['a column', '| Who | Where |'],
  ])('%s is fine', async (_what, text) => {
    expect(await inPage(text)).toEqual([]);
  });

  it('for machines are searched in their descriptions', async () => {
    const { findInDescriptions } = await import('../../../scripts/lib/words.mjs');
    const document = { summary: 'Whether it is on', name: 'Whether', parts: { title: 'Go on' } };
    expect(
      findInDescriptions(JSON.stringify(document, null, 2)).map(({ line, found: word }) => [
        line,
        word,
      ])
    ).toEqual([
      [2, '"Whether …"'],
      [5, '"Go on"'],
    ]);
  });
});
