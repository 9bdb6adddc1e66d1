import fs from 'node:fs';
import path from 'node:path';

const FOLDER = path.resolve(__dirname, '../../../admin/src/translations');
const read = (language: string): Record<string, string> =>
  JSON.parse(fs.readFileSync(path.join(FOLDER, `${language}.json`), 'utf8'));

/** The names of the values that a message takes, such as `n` of `{n, number}`. */
const placeholders = (message: string): string[] =>
  [...new Set([...message.matchAll(/\{(\w+)(?=[,}])/g)].map(([, name]) => name))].sort();

const english = read('en');

describe.each(['de', 'fr'])('%s', (language) => {
  const texts = read(language);

  test('has every text of the English one, and no other', () => {
    expect(Object.keys(texts).sort()).toEqual(Object.keys(english).sort());
  });

  test('takes the same values in every text', () => {
    const different = Object.keys(english).filter(
      (key) => placeholders(english[key]).join() !== placeholders(texts[key]).join()
    );
    expect(different).toEqual([]);
  });
});

test('French has no punctuation that could begin a line', () => {
  const apart = / [:;!?»](?=\s|$|[.,)])|« /;
  const texts = read('fr');
  expect(Object.keys(texts).filter((key) => apart.test(texts[key]!))).toEqual([]);
});
