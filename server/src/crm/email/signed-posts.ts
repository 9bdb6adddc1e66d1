import { createHmac, createPublicKey, type KeyObject, timingSafeEqual, verify } from 'node:crypto';
import { digestOf, isRecord, jsonIn } from '../../runtime/text';

export interface ProviderEvent {
  type: 'opened' | 'clicked' | 'bounced' | 'complained' | 'unsubscribed' | 'received';
  /** The provider's id of it, the same when it is posted again; else one made of its content. */
  id: string;
  email: string;
  /** The CRM's campaign, as the sender gave it to the provider in a custom variable. */
  campaign: string | null;
  userAgent?: string | null;
  ip?: string | null;
  at?: number | null;
  sentAt?: number | null;
  /** The provider itself reports a machine's open or click. */
  machine?: boolean;
  url?: string | null;
  hard?: boolean;
  reason?: string | null;
  /** Only a mail that came in has these. */
  subject?: string | null;
  text?: string | null;
}

export interface ProviderPost {
  bytes: Buffer;
  contentType: string;
  header(name: string): string | undefined;
}

export interface SignedPost {
  events: ProviderEvent[];
  /** Token and first content, if the signature covers only a token; other content with that token is refused. */
  once: { token: string; content: string } | null;
}

/** Reads a provider's post; null: its signature is invalid or expired. */
export type Provider = (post: ProviderPost, now: number) => Promise<SignedPost | null>;

/* Reads values out of what a provider posts, whatever it turns out to be. */

type Values = Readonly<Record<string, unknown>>;

const textOf = (value: unknown): string | null =>
  typeof value === 'string' && value !== '' ? value : null;

/** Unix seconds, as a number or in digits, to epoch milliseconds. */
const timeOf = (value: unknown): number | null => {
  const seconds = typeof value === 'string' ? Number(value) : value;
  return typeof seconds === 'number' && Number.isFinite(seconds) && seconds > 0
    ? Math.round(seconds * 1000)
    : null;
};

const isForm = (contentType: string): boolean =>
  /^(multipart\/form-data|application\/x-www-form-urlencoded)/i.test(contentType);

/** The text fields of a form, multipart or urlencoded; null if the body is neither. */
const formFields = async (bytes: Buffer, contentType: string): Promise<Values | null> => {
  try {
    const response = new Response(new Uint8Array(bytes), {
      headers: { 'content-type': contentType },
    });
    const fields: Record<string, unknown> = {};
    for (const [name, value] of await response.formData()) {
      if (typeof value === 'string') fields[name] = value;
    }
    return fields;
  } catch {
    return null;
  }
};

/** `"Ada L" <ada@example.com>` -> `ada@example.com`. */
export const addressOf = (from: unknown): string | null => {
  const text = textOf(from)?.trim();
  if (!text) return null;
  const address = /<([^<>]+)>\s*$/.exec(text)?.[1] ?? text;
  return address.includes('@') ? address.trim() : null;
};

/** An inbound mail; none without a sender. */
const inbound = (mail: {
  id: string;
  email: string | null;
  subject: unknown;
  text: string | null;
}): ProviderEvent[] => {
  const { email, subject } = mail;
  if (!email) return [];
  return [{ ...mail, type: 'received', email, campaign: null, subject: textOf(subject) }];
};

/** How old a signature may be. Providers post again for hours, not for longer. */
export const SIGNATURE_WINDOW_MS = 3 * 24 * 3600 * 1000;
/** Clocks differ; a signature from further ahead could be kept and used when its time has come. */
const AHEAD_MS = 5 * 60 * 1000;

/** True if a signed time, Unix seconds in digits, is recent enough for its signature to count. */
const isCurrent = (timestamp: unknown, now: number): boolean => {
  const text = typeof timestamp === 'number' ? String(timestamp) : timestamp;
  if (typeof text !== 'string' || !/^[1-9]\d{0,11}$/.test(text)) return false;
  const at = Number(text) * 1000;
  return now - at <= SIGNATURE_WINDOW_MS && at - now <= AHEAD_MS;
};

/** @throws Error if the text is no public key; the site's options are then wrong. */
export const sendgridKey = (given: string): KeyObject => {
  const key = given.trim();
  if (key.includes('BEGIN PUBLIC KEY')) return createPublicKey(key);
  return createPublicKey({ key: Buffer.from(key, 'base64'), format: 'der', type: 'spki' });
};

const isSignedBySendgrid = (key: KeyObject, post: ProviderPost, now: number): boolean => {
  const signature = post.header('x-twilio-email-event-webhook-signature');
  const timestamp = post.header('x-twilio-email-event-webhook-timestamp');
  if (!signature || !timestamp || !isCurrent(timestamp, now)) return false;
  const signed = Buffer.concat([Buffer.from(timestamp), post.bytes]);
  try {
    return verify('sha256', signed, key, Buffer.from(signature, 'base64'));
  } catch {
    return false;
  }
};

const SENDGRID_TYPES: ReadonlyMap<string, ProviderEvent['type']> = new Map([
  ['open', 'opened'],
  ['click', 'clicked'],
  ['bounce', 'bounced'],
  ['spamreport', 'complained'],
  ['unsubscribe', 'unsubscribed'],
  ['group_unsubscribe', 'unsubscribed'],
]);

const sendgridEvents = (values: Values): ProviderEvent[] => {
  const type = SENDGRID_TYPES.get(String(values.event));
  const email = textOf(values.email);
  if (!type || !email) return [];
  const event: ProviderEvent = {
    type,
    // Without an id, the same content is the same event.
    id: textOf(values.sg_event_id) ?? digestOf(JSON.stringify(values)),
    email,
    campaign: textOf(values.campaign_id),
    userAgent: textOf(values.useragent),
    ip: textOf(values.ip),
    at: timeOf(values.timestamp),
    sentAt: timeOf(values.sent_at),
    machine: values.sg_machine_open === true,
    url: textOf(values.url),
    // `blocked`: refused for now (a full mailbox, a policy), which SendGrid itself retries.
    hard: values.type !== 'blocked',
    reason: textOf(values.reason),
  };
  return [event];
};

/**
 * Twilio SendGrid: Event Webhook (JSON array) and Inbound Parse (form). Both sign the timestamp header plus the raw
 * body with ECDSA P-256; the dashboard shows the public key as base64 DER.
 */
export const sendgrid =
  (key: KeyObject): Provider =>
  async (post, now) => {
    const { bytes, contentType } = post;
    if (!isSignedBySendgrid(key, post, now)) return null;
    if (!isForm(contentType)) {
      const list = jsonIn(bytes.toString('utf8'));
      const events = Array.isArray(list) ? list.filter(isRecord).flatMap(sendgridEvents) : [];
      return { events, once: null };
    }
    const fields = await formFields(bytes, contentType);
    if (!fields) return { events: [], once: null };
    const { from, subject, headers } = fields;
    const id = /^message-id:\s*(\S+)/im.exec(textOf(headers) ?? '')?.[1] ?? digestOf(bytes);
    const mail = { id, email: addressOf(from), subject, text: textOf(fields.text) };
    return { events: inbound(mail), once: null };
  };

/** A body is not parsed before its signature holds: these are looked for in the bytes, and judged again later. */
const NAMES = ['timestamp', 'token', 'signature'] as const;
const VALUE_MAX = 512;

/** `"signature": { … }`, which has no object within it; the first that has all of its keys. */
const signatureInJson = (bytes: Buffer): Values | null => {
  const text = bytes.toString('latin1');
  for (const found of text.matchAll(/"signature"\s{0,100}:\s{0,100}(\{[^{}]{0,2000}\})/g)) {
    const value = jsonIn(Buffer.from(found[1] ?? '', 'latin1').toString('utf8'));
    if (isRecord(value) && NAMES.every((name) => name in value)) return value;
  }
  return null;
};

const inUrlencoded = (text: string, name: string): string | null => {
  const value = new RegExp(`(?:^|&)${name}=([^&]{0,${VALUE_MAX}})`).exec(text)?.[1];
  return value === undefined ? null : new URLSearchParams(`v=${value}`).get('v');
};

const inMultipart = (bytes: Buffer, name: string): string | null => {
  const at = bytes.indexOf(`name="${name}"`);
  const start = at < 0 ? -1 : bytes.indexOf('\r\n\r\n', at);
  const end = start < 0 ? -1 : bytes.indexOf('\r\n--', start + 4);
  return end >= 0 && end - start <= VALUE_MAX ? bytes.toString('utf8', start + 4, end) : null;
};

const signatureInForm = (bytes: Buffer, contentType: string): Values => {
  const isMultipart = /^multipart/i.test(contentType);
  const text = isMultipart ? '' : bytes.toString('latin1');
  const valueOf = (name: string) =>
    isMultipart ? inMultipart(bytes, name) : inUrlencoded(text, name);
  return Object.fromEntries(NAMES.map((name) => [name, valueOf(name)]));
};

const isSignedByMailgun = (signingKey: string, signature: Values, now: number): boolean => {
  const { timestamp, token, signature: given } = signature;
  if (typeof token !== 'string' || token === '' || !isCurrent(timestamp, now)) return false;
  if (typeof given !== 'string') return false;
  const expected = createHmac('sha256', signingKey)
    .update(`${String(timestamp)}${token}`)
    .digest();
  const actual = Buffer.from(given, 'hex');
  return actual.length === expected.length && timingSafeEqual(actual, expected);
};

const record = (value: unknown): Values => (isRecord(value) ? value : {});

const variablesOf = (data: Values): Values => {
  const variables = data['user-variables'];
  return record(typeof variables === 'string' ? jsonIn(variables) : variables);
};

const MAILGUN_TYPES: ReadonlyMap<string, ProviderEvent['type']> = new Map([
  ['opened', 'opened'],
  ['clicked', 'clicked'],
  ['failed', 'bounced'],
  ['complained', 'complained'],
  ['unsubscribed', 'unsubscribed'],
]);

const mailgunEvents = (data: Values, token: string): ProviderEvent[] => {
  const type = MAILGUN_TYPES.get(String(data.event));
  const email = textOf(data.recipient);
  if (!type || !email) return [];
  const variables = variablesOf(data);
  const client = record(data['client-info']);
  const event: ProviderEvent = {
    type,
    // A post that is made again may come with another token.
    id: textOf(data.id) ?? token,
    email,
    campaign: textOf(variables.campaign_id),
    userAgent: textOf(client['user-agent']),
    ip: textOf(data.ip),
    at: timeOf(data.timestamp),
    sentAt: timeOf(variables.sent_at),
    machine: textOf(client.bot) !== null,
    url: textOf(data.url),
    hard: data.severity === 'permanent',
    reason: textOf(data.reason),
  };
  return [event];
};

/**
 * Mailgun: webhooks (JSON) and inbound routes (form). The signature is HMAC-SHA256 of timestamp and token under the
 * webhook signing key. It does not cover the body, so each token is bound to the first body it came with.
 */
export const mailgun =
  (signingKey: string): Provider =>
  async ({ bytes, contentType }, now) => {
    const isSigned = (signature: Values) => isSignedByMailgun(signingKey, signature, now);
    // Nothing is parsed without a signature.
    if (!isForm(contentType)) {
      const shown = signatureInJson(bytes);
      if (!shown || !isSigned(shown)) return null;
      const body = record(jsonIn(bytes.toString('utf8')));
      const signature = record(body.signature);
      if (!isSigned(signature)) return null;
      const token = String(signature.token);
      const data = record(body['event-data']);
      return { events: mailgunEvents(data, token), once: { token, content: JSON.stringify(data) } };
    }
    if (!isSigned(signatureInForm(bytes, contentType))) return null;
    const fields = await formFields(bytes, contentType);
    if (!fields || !isSigned(fields)) return null;
    const token = String(fields.token);
    const mail = {
      id: textOf(fields['Message-Id']) ?? token,
      email: addressOf(fields.from) ?? addressOf(fields.sender),
      subject: fields.subject,
      text: textOf(fields['stripped-text']) ?? textOf(fields['body-plain']),
    };
    return { events: inbound(mail), once: { token, content: JSON.stringify(fields) } };
  };
