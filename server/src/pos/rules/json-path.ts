/** Steps from the body to a value: keys of objects and indexes of arrays. */
export type JsonPath = readonly (string | number)[];

const PLAIN_KEY = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;
const SHOWN_CHARACTERS = 40;

/** A key as it may stand in a message: quoted and escaped, cut if it is long. */
const quote = (key: string): string => {
  const shown = Array.from(key.slice(0, SHOWN_CHARACTERS * 2))
    .slice(0, SHOWN_CHARACTERS)
    .join('');
  return JSON.stringify(shown.length < key.length ? `${shown}…` : shown);
};

/**
 * Names a value as messages to senders do: `line_items[0].sku`; odd keys in brackets,
 * `meta["two words"]`; the body itself is `body`.
 */
export const formatPath = (path: JsonPath): string => {
  if (path.length === 0) return 'body';
  return path
    .map((step, index) => {
      if (typeof step === 'number') return `[${step}]`;
      if (!PLAIN_KEY.test(step)) return `[${quote(step)}]`;
      return index === 0 ? step : `.${step}`;
    })
    .join('');
};
