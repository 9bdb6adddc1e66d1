import { randomBytes } from 'node:crypto';

const LETTERS = 'abcdefghijklmnopqrstuvwxyz';
const AT_ONCE = 4096;

/** Random characters, made in advance: the system's bytes for one id cost more than all the rest of it. */
const randomOf = (alphabet: string) => {
  const codes = Buffer.from(alphabet);
  let made = '';
  let used = 0;
  return (length: number): string => {
    if (used + length > made.length) {
      const bytes = randomBytes(AT_ONCE);
      for (let at = 0; at < AT_ONCE; at += 1)
        bytes[at] = codes[(bytes[at] ?? 0) % codes.length] ?? 0;
      [made, used] = [bytes.toString('latin1'), 0];
    }
    used += length;
    return made.slice(used - length, used);
  };
};

const hexDigits = randomOf('0123456789abcdef');
const letters = randomOf(LETTERS);
const lettersAndDigits = randomOf(`${LETTERS}0123456789`);

/** A UUID version 7 (RFC 9562), by `at` in epoch milliseconds, so that an index keeps ids of one time together. */
export const uuidV7 = (at: number, random = hexDigits(19)): string => {
  const time = at.toString(16).padStart(12, '0');
  const variant = '89ab'.charAt(Number.parseInt(random.charAt(3), 16) % 4);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-${variant}${random.slice(4, 7)}-${random.slice(7)}`;
};

/** An id of the form of the host's document ids, of some 120 random bits: a letter, then 23 letters and digits. */
export const randomDocumentId = (): string => letters(1) + lettersAndDigits(23);
