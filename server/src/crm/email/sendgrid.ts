import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto';
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
  type ProviderPost,
  textOf,
  timeOf,
  type Values,
} from './provider';

/**
 * Twilio SendGrid: the signed Event Webhook (a JSON array) and the signed Inbound Parse Webhook (a
 * form). Both sign the timestamp header followed by the raw body with ECDSA on P-256; the dashboard
 * gives the public key as base64 of its DER.
 */

const SIGNATURE = 'x-twilio-email-event-webhook-signature';
const TIMESTAMP = 'x-twilio-email-event-webhook-timestamp';

/** @throws Error if the text is no public key; the site's options are then wrong. */
export const sendgridKey = (given: string): KeyObject => {
  const key = given.trim();
  if (key.includes('BEGIN PUBLIC KEY')) return createPublicKey(key);
  return createPublicKey({ key: Buffer.from(key, 'base64'), format: 'der', type: 'spki' });
};

const isSigned = (key: KeyObject, post: ProviderPost, now: number): boolean => {
  const [signature, timestamp] = [post.header(SIGNATURE), post.header(TIMESTAMP)];
  if (!signature || !timestamp || !isCurrent(timestamp, now)) return false;
  const signed = Buffer.concat([Buffer.from(timestamp), post.bytes]);
  try {
    return verify('sha256', signed, key, Buffer.from(signature, 'base64'));
  } catch {
    return false;
  }
};

/** For what has no id: the same content is the same event. */
const contentId = (content: string | Buffer): string =>
  createHash('sha256').update(content).digest('hex');

const TYPES: Readonly<Record<string, ProviderEvent['type'] | undefined>> = {
  open: 'opened',
  click: 'clicked',
  bounce: 'bounced',
  spamreport: 'complained',
  unsubscribe: 'unsubscribed',
  group_unsubscribe: 'unsubscribed',
};

const sendgridEvent = (values: Values): ProviderEvent | null => {
  const base = {
    id: textOf(values.sg_event_id) ?? contentId(JSON.stringify(values)),
    email: textOf(values.email) ?? '',
    campaign: textOf(values.campaign_id),
  };
  return eventOf(TYPES[String(values.event)], base, {
    userAgent: textOf(values.useragent),
    ip: textOf(values.ip),
    at: timeOf(values.timestamp) ?? 0,
    sentAt: timeOf(values.sent_at),
    machine: values.sg_machine_open === true,
    url: textOf(values.url),
    // `blocked`: refused for now (a full mailbox, a policy), which SendGrid itself retries.
    hard: values.type !== 'blocked',
    reason: textOf(values.reason),
  });
};

const sendgridInbound = (fields: Values, bytes: Buffer): ProviderEvent[] => {
  const id = /^message-id:\s*(\S+)/im.exec(textOf(fields.headers) ?? '')?.[1];
  const text = textOf(fields.text);
  return inboundOf(id ?? contentId(bytes), addressOf(fields.from), {
    subject: fields.subject,
    text,
  });
};

export const createSendgrid = (key: KeyObject, now: () => number): Provider => ({
  async read(post) {
    if (!isSigned(key, post, now())) return null;
    if (isForm(post.contentType)) {
      const fields = await formFields(post.bytes, post.contentType);
      return { events: fields ? sendgridInbound(fields, post.bytes) : [], once: null };
    }
    const list = parseJson(post.bytes);
    const read = Array.isArray(list) ? list.filter(isValues).map(sendgridEvent) : [];
    const events = read.filter((event) => event !== null && event.email !== '');
    return { events: events as ProviderEvent[], once: null };
  },
});
