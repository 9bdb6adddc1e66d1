/** Gives that many unpredictable bytes; `randomBytes` of `node:crypto` in production. */
export type RandomSource = (size: number) => Uint8Array;

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Bytes from here on would make the first letters of the alphabet more likely than the others. */
const FAIR_BYTES = 256 - (256 % ALPHABET.length);

const randomText = (random: RandomSource, length: number): string => {
  let text = '';
  while (text.length < length) {
    for (const byte of random(length - text.length)) {
      if (byte < FAIR_BYTES) text += ALPHABET[byte % ALPHABET.length];
    }
  }
  return text;
};

/** A connection's permanent public key, independent of its mode: `pos_live_` and 142 random bits in base62. */
export const generateKey = (random: RandomSource): string => `pos_live_${randomText(random, 24)}`;

/** A connection's signing secret: `pos_secret_` and 256 random bits in base62. */
export const generateSecret = (random: RandomSource): string =>
  `pos_secret_${randomText(random, 43)}`;
