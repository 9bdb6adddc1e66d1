/** `npm run lint` lists private words in comments and names. */

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

it('a published name stays', async () => {
  expect(await found('const rebuild = ({ mend }) => mend;')).toEqual([]);
});
