import fs from 'node:fs';
import path from 'node:path';

const FOLDERS = ['admin/src/translations', 'playground/src/admin/translations'];

/** The names of the values that a message takes, such as `n` of `{n, number}`. */
const placeholders = (message: string): string[] =>
  [...new Set([...message.matchAll(/\{(\w+)(?=[,}])/g)].map(([, name]) => name))].sort();

describe.each(FOLDERS)('%s', (folder) => {
  const read = (language: string): Record<string, string> =>
    JSON.parse(
      fs.readFileSync(path.resolve(__dirname, '../../..', folder, `${language}.json`), 'utf8')
    );
  const english = read('en');

  test.each(['de', 'fr'])('%s has every text of the English one, and no other', (language) => {
    expect(Object.keys(read(language)).sort()).toEqual(Object.keys(english).sort());
  });

  test.each(['de', 'fr'])('%s takes the same values in every text', (language) => {
    const texts = read(language);
    const different = Object.keys(english).filter(
      (key) => placeholders(english[key]).join() !== placeholders(texts[key]).join()
    );
    expect(different).toEqual([]);
  });

  test('French has no punctuation that could begin a line', () => {
    const apart = / [:;!?»](?=\s|$|[.,)])|« /;
    const texts = read('fr');
    expect(Object.keys(texts).filter((key) => apart.test(texts[key]!))).toEqual([]);
  });
});
