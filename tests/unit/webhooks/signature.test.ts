import crypto from 'node:crypto';
import fc from 'fast-check';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import type { Webhook as Svix } from 'svix';
import {
  generateSecret,
  serviceSignature,
  signatureHeaders,
  standardSignature,
} from '../../../server/src/webhooks/rules/request-headers';
import { verifyPost } from './support/verify-post';

const secretFrom = (bytes: Uint8Array) => generateSecret(() => Buffer.from(bytes));
const anySecret = fc.uint8Array({ minLength: 32, maxLength: 32 }).map(secretFrom);
const anyBody = fc.json().map((text) => JSON.stringify({ data: text }));

const now = () => Math.floor(Date.now() / 1000);
const signed = (secret: string, body: string, timestamp = now()) =>
  signatureHeaders({ secret, deliveryId: 'd-1', event: 'contact.created', timestamp, body });

// An ES module only, which CommonJS can but import dynamically.
let SvixWebhook: typeof Svix;
beforeAll(async () => {
  SvixWebhook = (await import('svix')).Webhook;
});

describe('a new secret', () => {
  it('is whsec_ and the base64 of 32 random bytes, another each time', () => {
    const secrets = new Set(Array.from({ length: 100 }, () => generateSecret()));
    expect(secrets.size).toBe(100);
    for (const secret of secrets) {
      expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
      expect(Buffer.from(secret.slice(6), 'base64')).toHaveLength(32);
    }
  });
});

describe('signatures while a secret is replaced', () => {
  it('are accepted with the new secret and with the one before, by both packages and by hand', () => {
    fc.assert(
      fc.property(anySecret, anySecret, anyBody, (secret, previousSecret, body) => {
        const timestamp = now();
        const headers = signatureHeaders({
          ...{ secret, previousSecret, timestamp, body },
          ...{ deliveryId: 'd-1', event: 'contact.created' },
        });
        for (const key of [secret, previousSecret]) {
          expect(() => new StandardWebhook(key).verify(body, headers)).not.toThrow();
          expect(() => new SvixWebhook(key).verify(body, headers)).not.toThrow();
        }
        expect(verifyPost(secret, headers, Buffer.from(body), timestamp)).toBe(true);
        expect(headers['X-Service-Signature-Previous']).toBe(
          serviceSignature(previousSecret, timestamp, body)
        );
      }),
      { numRuns: 20 }
    );
  });

  it('have nothing of an older secret otherwise', () => {
    const headers = signed(generateSecret(), '{}');
    expect(headers).not.toHaveProperty('X-Service-Signature-Previous');
    expect(headers['webhook-signature']).not.toContain(' ');
  });
});

describe('signatures', () => {
  it('match vectors computed with openssl', () => {
    // printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac "$secret", and
    // printf 'd-1.1700000000.{"a":1}' | openssl dgst -sha256 -mac HMAC -macopt hexkey:000102…1f -binary | base64
    const secret = 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=';
    expect(serviceSignature(secret, 1_700_000_000, '{"a":1}')).toBe(
      'sha256=7ca151e4fc23256c89e882261933d6af9a8be1f09f32dd687e83b0e34da7e68f'
    );
    expect(standardSignature(secret, 'd-1', 1_700_000_000, '{"a":1}')).toBe(
      'v1,x94zyzMmH7q00NEhbNZtGmR3mptaWzjEsf1NPOP7T60='
    );
  });

  it('are accepted by a receiver written from the words of the contract', () => {
    fc.assert(
      fc.property(anySecret, anyBody, (secret, body) => {
        expect(verifyPost(secret, signed(secret, body), Buffer.from(body), now())).toBe(true);
      })
    );
  });

  it('are accepted by the packages standardwebhooks and svix, unchanged', () => {
    fc.assert(
      fc.property(anySecret, anyBody, (secret, body) => {
        const headers = signed(secret, body);
        expect(new StandardWebhook(secret).verify(body, headers)).toEqual(JSON.parse(body));
        expect(() => new SvixWebhook(secret).verify(body, headers)).not.toThrow();
      })
    );
  });

  it('are refused after any change of the body, the secret or the time', () => {
    fc.assert(
      fc.property(anySecret, anySecret, anyBody, fc.nat(), (secret, other, body, at) => {
        fc.pre(secret !== other);
        const headers = signed(secret, body);
        const changed = Buffer.from(body);
        const index = at % changed.length;
        changed[index] = (changed[index] ?? 0) ^ 1;
        expect(verifyPost(secret, headers, changed, now())).toBe(false);
        expect(verifyPost(other, headers, Buffer.from(body), now())).toBe(false);
        const later = { ...headers, 'X-Service-Timestamp': String(now() + 1) };
        expect(verifyPost(secret, later, Buffer.from(body), now())).toBe(false);
        expect(() => new StandardWebhook(other).verify(body, headers)).toThrow();
        expect(() => new SvixWebhook(secret).verify(changed.toString('latin1'), headers)).toThrow();
      })
    );
  });

  it('are refused by a receiver once they are more than 300 seconds old', () => {
    const secret = generateSecret(crypto.randomBytes);
    const headers = signed(secret, '{}', 1000);
    expect(verifyPost(secret, headers, Buffer.from('{}'), 1300)).toBe(true);
    expect(verifyPost(secret, headers, Buffer.from('{}'), 1301)).toBe(false);
  });

  it('are over the bytes of the body, whatever its characters', () => {
    fc.assert(
      fc.property(anySecret, fc.string({ unit: 'binary' }), (secret, text) => {
        const body = JSON.stringify({ text });
        expect(verifyPost(secret, signed(secret, body), Buffer.from(body, 'utf8'), now())).toBe(
          true
        );
      })
    );
  });
});
