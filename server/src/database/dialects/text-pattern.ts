/** For `LIKE … ESCAPE '!'`: `%` and `_` of a text mean themselves. */
export const likePattern = (text: string): string => `%${text.replace(/[!%_]/g, '!$&')}%`;

/** `contains` of a dialect whose `LOWER` knows the cases of every language. */
export const containsByLike = (text: string): { sql: string; binding: string } => ({
  sql: "LOWER(??) LIKE LOWER(?) ESCAPE '!'",
  binding: likePattern(text),
});

const isOneCharacter = (text: string): boolean => [...text].length === 1;

/** One character in either case, or one that means something to GLOB, as itself. */
const inEitherCase = (character: string): string => {
  const cases = [character, character.toLowerCase(), character.toUpperCase()];
  const variants = [...new Set(cases.filter(isOneCharacter))];
  return variants.length > 1 || '*?['.includes(character) ? `[${variants.join('')}]` : character;
};

/** For SQLite's `GLOB`: its `LOWER` and `LIKE` know the cases of ASCII alone. */
export const globPattern = (text: string): string => `*${[...text].map(inEitherCase).join('')}*`;
