import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Provider, ProviderEvent } from './types';
import { addressOf, formFields, isValues, parseJson, textOf, timeOf, type Values } from './values';

/**
 * Mailgun: webhooks (JSON) and routes that forward inbound mail (a form). Both carry timestamp,
 * token and signature, which is the HMAC-SHA256 of timestamp and token under the account's webhook
 * signing key. It does not cover the rest, so HTTPS has to.
 */

/** As long as a token is remembered (`seen-events.ts`), so that none can be replayed after. */
export const MAILGUN_WINDOW_MS = 3 * 24 * 3600 * 1000;

const isSigned = (signingKey: string, signature: Values, now: number): boolean => {
  const { timestamp, token, signature: given } = signature;
  const at = timeOf(timestamp);
  if (at === null || typeof token !== 'string' || token === '') return false;
  if (typeof given !== 'string' || Math.abs(now - at) > MAILGUN_WINDOW_MS) return false;
  const expected = createHmac('sha256', signingKey)
    .update(`${String(timestamp)}${token}`)
    .digest();
  const actual = Buffer.from(given, 'hex');
  return actual.length === expected.length && timingSafeEqual(actual, expected);
};

const record = (value: unknown): Values => (isValues(value) ? value : {});

const variablesOf = (data: Values): Values => {
  const variables = data['user-variables'];
  return typeof variables === 'string'
    ? record(parseJson(Buffer.from(variables)))
    : record(variables);
};

const eventOf = (data: Values, token: string): ProviderEvent | null => {
  const variables = variablesOf(data);
  const client = record(data['client-info']);
  const base = {
    // The signed token, not the event's own id: only it is known to come from Mailgun.
    id: token,
    email: textOf(data.recipient) ?? '',
    campaign: textOf(variables.campaign_id),
  };
  const seen = () => ({
    userAgent: textOf(client['user-agent']),
    ip: textOf(data.ip),
    at: timeOf(data.timestamp) ?? 0,
    sentAt: timeOf(variables.sent_at),
    machine: textOf(client.bot) !== null,
  });
  switch (data.event) {
    case 'opened':
      return { ...base, type: 'opened', ...seen() };
    case 'clicked':
      return { ...base, type: 'clicked', url: textOf(data.url) ?? '', ...seen() };
    case 'failed':
      return {
        ...base,
        type: 'bounced',
        hard: data.severity === 'permanent',
        reason: textOf(data.reason),
      };
    case 'complained':
      return { ...base, type: 'complained' };
    case 'unsubscribed':
      return { ...base, type: 'unsubscribed' };
    default:
      return null;
  }
};

const inboundOf = (fields: Values): ProviderEvent[] => {
  const email = addressOf(fields.from) ?? addressOf(fields.sender);
  if (!email) return [];
  return [
    {
      id: textOf(fields.token),
      email,
      campaign: null,
      type: 'received',
      subject: textOf(fields.subject),
      from: email,
      text: textOf(fields['stripped-text']) ?? textOf(fields['body-plain']),
    },
  ];
};

export const createMailgun = (signingKey: string, now: () => number): Provider => ({
  async read({ bytes, contentType }) {
    if (/^(multipart\/form-data|application\/x-www-form-urlencoded)/i.test(contentType)) {
      const fields = await formFields(bytes, contentType);
      return fields && isSigned(signingKey, fields, now()) ? inboundOf(fields) : null;
    }
    const body = record(parseJson(bytes));
    const signature = record(body.signature);
    if (!isSigned(signingKey, signature, now())) return null;
    const event = eventOf(record(body['event-data']), String(signature.token));
    return event && event.email !== '' ? [event] : [];
  },
});
