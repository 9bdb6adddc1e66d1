import Sqlite from 'better-sqlite3';
import { globPattern, likePattern } from '../../../server/src/database/dialects/shared';

it.each([
  ['abc', '%abc%'],
  ['50%_!', '%50!%!_!!%'],
])('for LIKE, a text means itself: %s', (text, pattern) => {
  expect(likePattern(text)).toBe(pattern);
});

describe('for GLOB', () => {
  const database = new Sqlite(':memory:');
  afterAll(() => database.close());
  const matches = (value: string, text: string): boolean =>
    database.prepare('SELECT 1 WHERE ? GLOB ?').all(value, globPattern(text)).length === 1;

  it.each([
    ['Ada Lovelace', 'LOVE'],
    ['ÄRMEL', 'ärm'],
    ['ärmel', 'Ä'],
    ['Straße', 'STRAß'],
    ['a[b]c', '[B]'],
    ['a*b?c', '*B?'],
    ['x^y-z]', '^Y-Z]'],
    ['Ελλάδα', 'ΕΛΛ'],
    ['a\\b', '\\B'],
    ['😀 fine', '😀 F'],
  ])('%s has %s in it', (value, text) => {
    expect(matches(value, text)).toBe(true);
  });

  it.each([
    ['abc', '*'],
    ['abc', 'a?c'],
    ['abc', '[a]'],
    ['abc', 'abd'],
  ])('%s does not have %s in it', (value, text) => {
    expect(matches(value, text)).toBe(false);
  });
});
