import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto';
import {
  addressOf,
  formFields,
  isCurrent,
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

const keyOf = (publicKey: string): KeyObject =>
  publicKey.includes('BEGIN PUBLIC KEY')
    ? createPublicKey(publicKey)
    : createPublicKey({ key: Buffer.from(publicKey, 'base64'), format: 'der', type: 'spki' });

/** @throws Error where the text is no public key; the site's options are then wrong. */
export const sendgridKey = (publicKey: string): KeyObject => keyOf(publicKey.trim());

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

const about = (values: Values) => ({
  id: textOf(values.sg_event_id) ?? contentId(JSON.stringify(values)),
  email: textOf(values.email) ?? '',
  campaign: textOf(values.campaign_id),
});

const sightingOf = (values: Values) => ({
  userAgent: textOf(values.useragent),
  ip: textOf(values.ip),
  at: timeOf(values.timestamp) ?? 0,
  sentAt: timeOf(values.sent_at),
  machine: values.sg_machine_open === true,
});

const eventOf = (values: Values): ProviderEvent | null => {
  const base = about(values);
  switch (values.event) {
    case 'open':
      return { ...base, type: 'opened', ...sightingOf(values) };
    case 'click':
      return { ...base, type: 'clicked', url: textOf(values.url) ?? '', ...sightingOf(values) };
    case 'bounce':
      // `blocked`: refused for now (a full mailbox, a policy), which SendGrid itself retries.
      return {
        ...base,
        type: 'bounced',
        hard: values.type !== 'blocked',
        reason: textOf(values.reason),
      };
    case 'spamreport':
      return { ...base, type: 'complained' };
    case 'unsubscribe':
    case 'group_unsubscribe':
      return { ...base, type: 'unsubscribed' };
    default:
      return null;
  }
};

const inboundOf = (fields: Values, bytes: Buffer): ProviderEvent[] => {
  const email = addressOf(fields.from);
  if (!email) return [];
  const id = /^message-id:\s*(\S+)/im.exec(textOf(fields.headers) ?? '')?.[1];
  return [
    {
      id: id ?? contentId(bytes),
      email,
      campaign: null,
      type: 'received',
      subject: textOf(fields.subject),
      from: email,
      text: textOf(fields.text),
    },
  ];
};

export const createSendgrid = (key: KeyObject, now: () => number): Provider => ({
  async read(post) {
    if (!isSigned(key, post, now())) return null;
    if (/^(multipart\/form-data|application\/x-www-form-urlencoded)/i.test(post.contentType)) {
      const fields = await formFields(post.bytes, post.contentType);
      return { events: fields ? inboundOf(fields, post.bytes) : [], once: null };
    }
    const list = parseJson(post.bytes);
    const read = Array.isArray(list) ? list.filter(isValues).map(eventOf) : [];
    const events = read.filter((event) => event !== null && event.email !== '');
    return { events: events as ProviderEvent[], once: null };
  },
});
