import { randomFillSync } from 'node:crypto';

const POOL = Buffer.alloc(4096);
let used = POOL.length;

/** Random bytes out of a pool: asking the system for a few costs more than all the rest of an id. */
const pooled = (size: number): Buffer => {
  if (used + size > POOL.length) {
    randomFillSync(POOL);
    used = 0;
  }
  used += size;
  return POOL.subarray(used - size, used);
};

/** A UUID version 7 (RFC 9562), by `at` in epoch milliseconds; ids of one time stay together in an index. */
export const uuidV7 = (at: number, random: (size: number) => Buffer = pooled): string => {
  const bytes = Buffer.allocUnsafe(16);
  random(10).copy(bytes, 6);
  bytes.writeUIntBE(at, 0, 6);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x70;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  const timeAndVersion = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}`;
  return `${timeAndVersion}-${hex.slice(16, 20)}-${hex.slice(20)}`;
};

const LETTERS_AND_DIGITS = 'abcdefghijklmnopqrstuvwxyz0123456789';

/** An id of the form of the host's document ids, of some 120 random bits: a letter, then 23 letters and digits. */
export const randomDocumentId = (): string => {
  let id = '';
  for (const byte of pooled(24)) id += LETTERS_AND_DIGITS.charAt(byte % (id ? 36 : 26));
  return id;
};
