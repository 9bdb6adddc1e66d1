import { randomBytes } from 'node:crypto';
import {
  generateApplicationPassword,
  hashApplicationPassword,
  normalizeApplicationPassword,
} from '../../../server/src/access/application-passwords';

describe('an application password', () => {
  it('is readable in groups and carries more than 128 random bits', () => {
    const password = generateApplicationPassword(randomBytes);
    expect(password).toMatch(/^([a-km-np-z2-9]{4} ){6}[a-km-np-z2-9]{4}$/);
    expect(Math.log2(32) * normalizeApplicationPassword(password).length).toBeGreaterThan(128);
  });

  it('uses each of its 32 characters equally often, so none of those bits is lost', () => {
    let byte = 0;
    const counted = (size: number) => Uint8Array.from({ length: size }, () => byte++ % 256);
    const seen = new Map<string, number>();
    for (let i = 0; i < 64; i += 1) {
      for (const character of normalizeApplicationPassword(generateApplicationPassword(counted))) {
        seen.set(character, (seen.get(character) ?? 0) + 1);
      }
    }
    expect(seen.size).toBe(32);
    expect(new Set(seen.values())).toEqual(new Set([(64 * 28) / 32]));
  });

  it('is the same however it is spaced', () => {
    const hash = hashApplicationPassword('abcd efgh', 'salt');
    for (const typed of ['abcdefgh', ' abcd  efgh ', 'abcd\u00a0efgh', 'ab cd\tefgh\n']) {
      expect(hashApplicationPassword(typed, 'salt')).toBe(hash);
    }
    expect(hashApplicationPassword('Abcd efgh', 'salt')).not.toBe(hash);
  });

  it('is stored as a hash that is worth nothing under another salt', () => {
    const hash = hashApplicationPassword('abcd', 'salt');
    expect(hash).toMatch(/^[0-9a-f]{128}$/);
    expect(hashApplicationPassword('abcd', 'other')).not.toBe(hash);
  });
});
