import { createHmac, timingSafeEqual } from 'node:crypto';
import {
  addressOf,
  eventOf,
  formFields,
  inboundOf,
  isCurrent,
  isForm,
  isValues,
  parseJson,
  type Provider,
  type ProviderEvent,
  textOf,
  timeOf,
  type Values,
} from './provider';

/**
 * Finds Mailgun's signature in a body that is not to be parsed before the signature holds. The found
 * signature is not trusted: the parsed body's own is judged again.
 */

const NAMES = ['timestamp', 'token', 'signature'] as const;
const VALUE_MAX = 512;

/** `"signature": { … }`, which has no object within it; the first that has all of its keys. */
const signatureInJson = (bytes: Buffer): Values | null => {
  const text = bytes.toString('latin1');
  for (const found of text.matchAll(/"signature"\s{0,100}:\s{0,100}(\{[^{}]{0,2000}\})/g)) {
    const value = parseJson(Buffer.from(found[1] ?? '', 'latin1'));
    if (isValues(value) && NAMES.every((name) => name in value)) return value;
  }
  return null;
};

const inUrlencoded = (bytes: Buffer): Values => {
  const text = bytes.toString('latin1');
  return Object.fromEntries(
    NAMES.flatMap((name) => {
      const value = new RegExp(`(?:^|&)${name}=([^&]{0,${VALUE_MAX}})`).exec(text)?.[1];
      return value === undefined ? [] : [[name, new URLSearchParams(`v=${value}`).get('v')]];
    })
  );
};

const inMultipart = (bytes: Buffer): Values =>
  Object.fromEntries(
    NAMES.flatMap((name) => {
      const at = bytes.indexOf(`name="${name}"`);
      const start = at < 0 ? -1 : bytes.indexOf('\r\n\r\n', at);
      const end = start < 0 ? -1 : bytes.indexOf('\r\n--', start + 4);
      const fits = end >= 0 && end - start <= VALUE_MAX;
      return fits ? [[name, bytes.toString('utf8', start + 4, end)]] : [];
    })
  );

const signatureInForm = (bytes: Buffer, contentType: string): Values | null =>
  /^multipart/i.test(contentType) ? inMultipart(bytes) : inUrlencoded(bytes);

/**
 * Mailgun: webhooks (JSON) and routes that forward inbound mail (a form). Both carry timestamp,
 * token and signature, which is the HMAC-SHA256 of timestamp and token under the account's webhook
 * signing key. It does not cover the rest, so a token counts once, with what it came with first.
 */

const isSigned = (signingKey: string, signature: Values, now: number): boolean => {
  const { timestamp, token, signature: given } = signature;
  if (typeof token !== 'string' || token === '' || !isCurrent(timestamp, now)) return false;
  if (typeof given !== 'string') return false;
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

const TYPES: Readonly<Record<string, ProviderEvent['type'] | undefined>> = {
  opened: 'opened',
  clicked: 'clicked',
  failed: 'bounced',
  complained: 'complained',
  unsubscribed: 'unsubscribed',
};

const mailgunEvent = (data: Values, token: string): ProviderEvent | null => {
  const variables = variablesOf(data);
  const client = record(data['client-info']);
  const base = {
    // A post that is made again may come with another token.
    id: textOf(data.id) ?? token,
    email: textOf(data.recipient) ?? '',
    campaign: textOf(variables.campaign_id),
  };
  return eventOf(TYPES[String(data.event)], base, {
    userAgent: textOf(client['user-agent']),
    ip: textOf(data.ip),
    at: timeOf(data.timestamp) ?? 0,
    sentAt: timeOf(variables.sent_at),
    machine: textOf(client.bot) !== null,
    url: textOf(data.url),
    hard: data.severity === 'permanent',
    reason: textOf(data.reason),
  });
};

const mailgunInbound = (fields: Values): ProviderEvent[] =>
  inboundOf(
    textOf(fields['Message-Id']) ?? String(fields.token),
    addressOf(fields.from) ?? addressOf(fields.sender),
    {
      subject: fields.subject,
      text: textOf(fields['stripped-text']) ?? textOf(fields['body-plain']),
    }
  );

export const createMailgun = (signingKey: string, now: () => number): Provider => ({
  async read({ bytes, contentType }) {
    // Nothing is parsed for somebody who has no signature to show.
    const shown = isForm(contentType)
      ? signatureInForm(bytes, contentType)
      : signatureInJson(bytes);
    if (!shown || !isSigned(signingKey, shown, now())) return null;
    if (isForm(contentType)) {
      const fields = await formFields(bytes, contentType);
      if (!fields || !isSigned(signingKey, fields, now())) return null;
      const once = { token: String(fields.token), content: JSON.stringify(fields) };
      return { events: mailgunInbound(fields), once };
    }
    const body = record(parseJson(bytes));
    const signature = record(body.signature);
    if (!isSigned(signingKey, signature, now())) return null;
    const token = String(signature.token);
    const data = record(body['event-data']);
    const event = mailgunEvent(data, token);
    return {
      events: event && event.email !== '' ? [event] : [],
      once: { token, content: JSON.stringify(data) },
    };
  },
});
