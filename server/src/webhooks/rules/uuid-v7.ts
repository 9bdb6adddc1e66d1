import { randomBytes } from 'node:crypto';

/**
 * A UUID version 7 (RFC 9562): its first 48 bits are the time, so ids made together stay together
 * in an index.
 * @param at epoch milliseconds.
 */
export const uuidV7 = (at: number, random: (size: number) => Buffer = randomBytes): string => {
  const bytes = Buffer.alloc(16);
  random(10).copy(bytes, 6);
  bytes.writeUIntBE(at, 0, 6);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x70;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    hex.slice(12, 16),
    hex.slice(16, 20),
    hex.slice(20),
  ].join('-');
};
