import { Webhook } from 'standardwebhooks';
import vectorFile from '../../../docs/vectors/webhook-signatures.json';
import { signatureHeaders } from '../../../server/src/webhooks/rules/request-headers';
import { verifyPost } from '../webhooks/support/verify-post';

const { vectors } = vectorFile;
const valid = vectors.filter((vector) => vector.valid);
const invalid = vectors.filter((vector) => !vector.valid);

describe('docs/vectors/webhook-signatures.json', () => {
  it('has vectors of both kinds', () => {
    expect(valid.length).toBeGreaterThanOrEqual(5);
    expect(invalid.length).toBeGreaterThanOrEqual(5);
  });

  it.each(vectors)('$name: text and bytes of the body are the same', ({ body, body_base64 }) => {
    expect(Buffer.from(body_base64, 'base64').toString('utf8')).toBe(body);
  });

  it.each(valid)('$name is what the plugin signs', (vector) => {
    const headers = signatureHeaders({
      secret: vector.secret,
      deliveryId: vector.delivery_id,
      event: vector.event,
      timestamp: vector.timestamp,
      body: vector.body,
    });
    expect(headers).toEqual({
      'X-Service-Event': vector.event,
      'X-Service-Delivery': vector.delivery_id,
      'X-Service-Timestamp': String(vector.timestamp),
      'X-Service-Signature': vector.service_signature,
      'webhook-id': vector.delivery_id,
      'webhook-timestamp': String(vector.timestamp),
      'webhook-signature': vector.standard_signature,
    });
  });

  const accepted = (vector: (typeof vectors)[number]): [service: boolean, standard: boolean] => {
    const headers = {
      'x-service-timestamp': String(vector.timestamp),
      'x-service-signature': vector.service_signature,
      'webhook-id': vector.delivery_id,
      'webhook-timestamp': String(vector.timestamp),
      'webhook-signature': vector.standard_signature,
    };
    const raw = Buffer.from(vector.body_base64, 'base64');
    let standard = true;
    try {
      new Webhook(vector.secret).verify(raw.toString('utf8'), headers);
    } catch {
      standard = false;
    }
    return [verifyPost(vector.secret, headers, raw, vector.timestamp), standard];
  };

  describe('at the time of the vector', () => {
    afterEach(() => jest.useRealTimers());

    it.each(valid)('$name is accepted', (vector) => {
      jest.useFakeTimers({ now: vector.timestamp * 1000 });
      expect(accepted(vector)).toEqual([true, true]);
    });

    it.each(invalid)('$name is refused', (vector) => {
      jest.useFakeTimers({ now: vector.timestamp * 1000 });
      expect(accepted(vector)).toEqual([false, false]);
    });
  });
});
