/** Gives that many unpredictable bytes; `randomBytes` of `node:crypto` in production. */
export type RandomSource = (size: number) => Uint8Array;

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** The form that the contract knows. It says nothing of the mode, which changes while the key stays. */
const KEY_PREFIX = 'pos_live_';
export const SECRET_PREFIX = 'pos_secret_';

/** 24 characters of 62 are 142 bits, 43 are 256. */
const KEY_CHARACTERS = 24;
const SECRET_CHARACTERS = 43;

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

/**
 * A connection's public key: `pos_live_` and 142 random bits in base62. It stays the connection's for
 * life, whatever its mode is.
 */
export const generateKey = (random: RandomSource): string =>
  KEY_PREFIX + randomText(random, KEY_CHARACTERS);

/** A connection's signing secret: `pos_secret_` and 256 random bits in base62. */
export const generateSecret = (random: RandomSource): string =>
  SECRET_PREFIX + randomText(random, SECRET_CHARACTERS);
