/**
 * One line of text that every database takes, whatever a site's own fields hold: the write must not
 * fail because of a label.
 */
export const lineOf = (value: unknown, maximum: number): string => {
  if (typeof value !== 'string' && typeof value !== 'number') return '';
  const line = String(value)
    .replace(/\p{Surrogate}/gu, '\ufffd')
    .replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .trim();
  return line.length <= maximum ? line : [...line.slice(0, maximum * 2)].slice(0, maximum).join('');
};
