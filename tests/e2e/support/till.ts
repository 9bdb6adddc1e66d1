import crypto from 'node:crypto';
import { send } from '../../support/http';

export interface TillKeys {
  key: string;
  secret: string;
}

/** Signs a record as a till does and sends it; resolves with the status of the answer. */
export const sendRecord = async (
  siteUrl: string,
  { key, secret }: TillKeys,
  kind: string,
  body: Record<string, unknown>
): Promise<number> => {
  const text = JSON.stringify({ occurred_at: new Date().toISOString(), ...body });
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signature = crypto
    .createHmac('sha256', secret)
    .update(`${timestamp}\n${text}`)
    .digest('hex');
  const answer = await send({
    method: 'POST',
    url: `${siteUrl}/api/service-pos/v1/${kind}`,
    headers: {
      'content-type': 'application/json',
      'x-pos-key': key,
      'x-pos-timestamp': timestamp,
      'x-pos-signature': `sha256=${signature}`,
    },
    body: text,
  });
  return answer.status;
};

/** A sale of one line. */
export const saleOf = (id: string, sku: string, quantity: number): Record<string, unknown> => ({
  external_id: id,
  currency: 'EUR',
  total: 100,
  line_items: [{ sku, quantity }],
});
