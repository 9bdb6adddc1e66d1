import { execFileSync } from 'node:child_process';
import { createHmac, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';

import fc from 'fast-check';

import { generateKey, generateSecret } from '../../../server/src/pos/rules/credentials';
import {
  judgeTimestamp,
  requireConnection,
  verifySignature,
} from '../../../server/src/pos/intake/authentication';
import { isInstalled } from '../../support/programs';
import { signBody } from '../../support/till-signature';

interface Vector {
  name: string;
  key: string;
  secret: string;
  timestamp: string;
  body?: string;
  body_base64: string;
  signature: string;
}

const file = path.join(__dirname, '../../../docs/vectors/pos-signatures.json');
const { vectors } = JSON.parse(readFileSync(file, 'utf8')) as { vectors: Vector[] };
const hasOpenssl = isInstalled('openssl', 'version');

const secret = 'pos_secret_x';
const body = Buffer.from('{"a":1}');
const NOW = 1_772_370_300_000;

describe('the published signature vectors', () => {
  it.each(vectors.map((vector) => [vector.name, vector] as const))(
    '%s: we sign and verify it, in either case of the hex',
    (_name, vector) => {
      const bytes = Buffer.from(vector.body_base64, 'base64');
      if (vector.body !== undefined) expect(Buffer.from(vector.body)).toEqual(bytes);
      expect(signBody(vector.secret, vector.timestamp, bytes)).toBe(vector.signature);
      for (const signature of [
        vector.signature,
        `sha256=${vector.signature.slice(7).toUpperCase()}`,
      ]) {
        const request = { timestamp: vector.timestamp, signature, body: bytes };
        expect(verifySignature(vector.secret, request)).toBe(true);
      }
    }
  );

  (hasOpenssl ? it.each : it.skip.each)(vectors.map((vector) => [vector.name, vector] as const))(
    '%s: openssl, which shares no code with us, agrees',
    (_name, vector) => {
      const out = execFileSync(
        'openssl',
        ['dgst', '-sha256', '-mac', 'HMAC', '-r', '-macopt'].concat(
          `hexkey:${Buffer.from(vector.secret).toString('hex')}`
        ),
        {
          input: Buffer.concat([
            Buffer.from(`${vector.timestamp}\n`),
            Buffer.from(vector.body_base64, 'base64'),
          ]),
        }
      );
      expect(`sha256=${out.toString().slice(0, 64)}`).toBe(vector.signature);
    }
  );

  it('differ wherever a byte differs', () => {
    expect(new Set(vectors.map(({ signature }) => signature)).size).toBe(vectors.length);
  });
});

describe('verifySignature', () => {
  it('accepts what we sign and refuses any other byte, timestamp or secret', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 1, maxLength: 200 }),
        fc.nat(999_999_999),
        fc.string({ minLength: 1 }),
        fc.nat(),
        (bytes, seconds, key, position) => {
          const timestamp = String(seconds + 1);
          const signature = signBody(key, timestamp, bytes);
          expect(verifySignature(key, { timestamp, signature, body: bytes })).toBe(true);
          const changed = Uint8Array.from(bytes);
          const index = position % changed.length;
          changed[index] = (changed[index] ?? 0) ^ 1;
          expect(verifySignature(key, { timestamp, signature, body: changed })).toBe(false);
          expect(verifySignature(`${key}x`, { timestamp, signature, body: bytes })).toBe(false);
          const later = String(seconds + 2);
          expect(verifySignature(key, { timestamp: later, signature, body: bytes })).toBe(false);
        }
      ),
      { numRuns: 300 }
    );
  });

  it.each([
    ['missing', undefined],
    ['empty', ''],
    ['bare hex', signBody(secret, '1', body).slice(7)],
    ['63 digits', signBody(secret, '1', body).slice(0, -1)],
    ['65 digits', `${signBody(secret, '1', body)}0`],
    ['no hex', `sha256=${'g'.repeat(64)}`],
    ['all zeros', `sha256=${'0'.repeat(64)}`],
    [
      'base64',
      `sha256=${createHmac('sha256', secret).update('1\n').update(body).digest('base64')}`,
    ],
    ['another algorithm', signBody(secret, '1', body).replace('sha256', 'sha512')],
    ['a list of two', `${signBody(secret, '1', body)}, ${signBody(secret, '1', body)}`],
    ['a newline after', `${signBody(secret, '1', body)}\n`],
  ])('refuses a signature that is %s', (_name, signature) => {
    expect(verifySignature(secret, { timestamp: '1', signature, body })).toBe(false);
  });

  it('is spent for an unknown key, and that is refused', () => {
    const request = { timestamp: '1', signature: undefined, body };
    expect(() => requireConnection(null, request)).toThrow('unknown on this site');
  });
});

describe('judgeTimestamp', () => {
  const seconds = NOW / 1000;

  it.each([
    [-300, true],
    [-301, false],
    [0, true],
    [300, true],
    [301, false],
  ])('a till %i seconds off: accepted %s, with the signed skew', (skewSeconds, ok) => {
    const header = String(seconds + skewSeconds);
    expect(judgeTimestamp(header, NOW)).toMatchObject({ ok, skewSeconds });
    expect(judgeTimestamp(header, NOW + 999)).toMatchObject({ ok, skewSeconds });
  });

  it.each([
    undefined,
    '',
    '0',
    '01772370300',
    '-1772370300',
    '+1772370300',
    '1772370300.0',
    '1.7e9',
    '0x69a43f3c',
    ' 1772370300',
    '1772370300\n',
    '1772370300, 1772370300',
    '1234567890123',
    '١٧٧٢٣٧٠٣٠٠',
    'now',
  ])('an unreadable header %p has no skew', (header) => {
    expect(judgeTimestamp(header, NOW)).toEqual({ ok: false, skewSeconds: null });
  });

  it('tells a clock in milliseconds by its skew or not at all', () => {
    expect(judgeTimestamp('999999999999', NOW)).toMatchObject({ ok: false });
  });
});

describe('credentials', () => {
  it('have their form and at least 128 random bits', () => {
    const key = generateKey(randomBytes);
    expect(key).toMatch(/^pos_live_[0-9A-Za-z]{22,}$/);
    expect(generateSecret(randomBytes)).toMatch(/^pos_secret_[0-9A-Za-z]{43}$/);
    expect(generateKey(randomBytes)).not.toBe(key);
  });

  it('use each letter equally often, and skip bytes that would favour the first ones', () => {
    let next = 0;
    const everyByte = (size: number) => Uint8Array.from({ length: size }, () => next++ % 256);
    const seen = new Map<string, number>();
    // 31 keys of 24 letters and the letters of 248 fair bytes have 744 = 3 * 248 in common.
    for (let made = 0; made < 31; made++) {
      for (const letter of generateKey(everyByte).slice('pos_live_'.length)) {
        seen.set(letter, (seen.get(letter) ?? 0) + 1);
      }
    }
    expect(seen.size).toBe(62);
    expect([...new Set(seen.values())]).toEqual([12]);
  });
});
