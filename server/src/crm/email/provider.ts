import { isRecord } from '../../runtime/text';

/** A provider's post, in our own words. */
export type ProviderEvent = {
  /** The provider's id of it, the same when it is posted again; else one made of its content. */
  id: string;
  email: string;
  /** The CRM's campaign, as the sender gave it to the provider in a custom variable. */
  campaign: string | null;
} & (
  | ({ type: 'opened' } & Seen)
  | ({ type: 'clicked'; url: string } & Seen)
  | { type: 'bounced'; hard: boolean; reason: string | null }
  | { type: 'complained' }
  | { type: 'unsubscribed' }
  | { type: 'received'; subject: string | null; from: string | null; text: string | null }
);

interface Seen {
  userAgent: string | null;
  ip: string | null;
  at: number;
  sentAt: number | null;
  /** The provider itself says that a machine did it. */
  machine: boolean;
}

export interface ProviderPost {
  bytes: Buffer;
  contentType: string;
  header(name: string): string | undefined;
}

export interface SignedPost {
  events: ProviderEvent[];
  /**
   * If the signature covers a token and not the body: the token, and its first content. With anything
   * else it is refused. Null if the signature covers the body.
   */
  once: { token: string; content: string } | null;
}

/** `null` from `read`: the signature does not hold, or not any more. */
export interface Provider {
  read(post: ProviderPost): Promise<SignedPost | null>;
}

interface Said extends Seen {
  url: string | null;
  hard: boolean;
  reason: string | null;
}

/** @param type undefined: the event means nothing to the CRM */
export const eventOf = (
  type: ProviderEvent['type'] | undefined,
  base: Pick<ProviderEvent, 'id' | 'email' | 'campaign'>,
  { url, hard, reason, ...seen }: Said
): ProviderEvent | null => {
  switch (type) {
    case 'opened':
      return { ...base, type, ...seen };
    case 'clicked':
      return { ...base, type, url: url ?? '', ...seen };
    case 'bounced':
      return { ...base, type, hard, reason };
    case 'complained':
    case 'unsubscribed':
      return { ...base, type };
    default:
      return null;
  }
};

/** A mail that came in; none if nobody is said to have sent it. */
export const inboundOf = (
  id: string,
  email: string | null,
  { subject, text }: { subject: unknown; text: string | null }
): ProviderEvent[] =>
  email
    ? [{ id, email, campaign: null, type: 'received', subject: textOf(subject), from: email, text }]
    : [];

/** Reads values out of what a provider posts, whatever it turns out to be. */

export type Values = Readonly<Record<string, unknown>>;

export const isValues: (value: unknown) => value is Values = isRecord;

export const textOf = (value: unknown): string | null =>
  typeof value === 'string' && value !== '' ? value : null;

/** Unix seconds, as a number or in digits, to epoch milliseconds. */
export const timeOf = (value: unknown): number | null => {
  const seconds = typeof value === 'string' ? Number(value) : value;
  return typeof seconds === 'number' && Number.isFinite(seconds) && seconds > 0
    ? Math.round(seconds * 1000)
    : null;
};

export const parseJson = (bytes: Buffer): unknown => {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return null;
  }
};

export const isForm = (contentType: string): boolean =>
  /^(multipart\/form-data|application\/x-www-form-urlencoded)/i.test(contentType);

/** The text fields of a form, multipart or urlencoded; null if the body is neither. */
export const formFields = async (bytes: Buffer, contentType: string): Promise<Values | null> => {
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

/** How old a signature may be. Providers post again for hours, not for longer. */
export const SIGNATURE_WINDOW_MS = 3 * 24 * 3600 * 1000;
/** Clocks differ; a signature from further ahead could be kept and used when its time has come. */
const AHEAD_MS = 5 * 60 * 1000;

/** True if a signed time, Unix seconds in digits, is recent enough for its signature to count. */
export const isCurrent = (timestamp: unknown, now: number): boolean => {
  const text = typeof timestamp === 'number' ? String(timestamp) : timestamp;
  if (typeof text !== 'string' || !/^[1-9]\d{0,11}$/.test(text)) return false;
  const at = Number(text) * 1000;
  return now - at <= SIGNATURE_WINDOW_MS && at - now <= AHEAD_MS;
};
