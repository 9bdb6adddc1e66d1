import { readTextFile, readTexts as read, TEXT_FILES } from '../../support/translations';

/** The names of the values that a message takes, such as `n` of `{n, number}`. */
const placeholders = (message: string): string[] =>
  [...new Set([...message.matchAll(/\{(\w+)(?=[,}])/g)].map(([, name]) => name))].sort();

const english = read('en');

describe.each(['de', 'fr'])('%s', (language) => {
  const texts = read(language);

  test.each(TEXT_FILES)('has every text of the English file %j, and no other', (part) => {
    const keys = (of: string) => Object.keys(readTextFile(part, of)).sort();
    expect(keys(language)).toEqual(keys('en'));
  });

  test('takes the same values in every text', () => {
    const different = Object.keys(english).filter(
      (key) => placeholders(english[key]).join() !== placeholders(texts[key]).join()
    );
    expect(different).toEqual([]);
  });
});

test('no key is in two files', () => {
  const keys = TEXT_FILES.flatMap((part) => Object.keys(readTextFile(part, 'en')));
  expect(keys.filter((key, at) => keys.indexOf(key) < at)).toEqual([]);
});

test('French has no punctuation that could begin a line', () => {
  const apart = / [:;!?»](?=\s|$|[.,)])|« /;
  const texts = read('fr');
  expect(Object.keys(texts).filter((key) => apart.test(texts[key]!))).toEqual([]);
});
