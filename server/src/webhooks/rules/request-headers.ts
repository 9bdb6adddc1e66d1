import { createHmac, randomBytes } from 'node:crypto';
import type { RefusalCode } from '../../../../shared/contracts/refusals';
import { HEADER_LIMITS, KEPT_VALUE } from '../../../../shared/contracts/webhooks';
import { type Refusal, refusal } from '../../runtime/refusal';
import { REDACTED, redactText } from '../../runtime/text';

/*
 * The headers of an attempt: those that sign it, those that handlers may decide about, those of the
 * webhook's own, and how they are shown in the log.
 */

const PREFIX = 'whsec_';

/** A new signing secret: `whsec_` and the base64 of 32 random bytes. */
export const generateSecret = (random: (size: number) => Buffer = randomBytes): string =>
  PREFIX + random(32).toString('base64');

/**
 * `X-Service-Signature`: `sha256=` and the lowercase hex HMAC-SHA256 of `<timestamp>.<body>`, keyed with the whole
 * secret string; `timestamp` in Unix seconds. docs/contract-webhooks.md#signatures
 */
export const serviceSignature = (secret: string, timestamp: number, body: string): string =>
  `sha256=${createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex')}`;

/** `webhook-signature`: `v1,`, base64 HMAC-SHA256 of `<id>.<timestamp>.<body>` by the bytes that the secret encodes. */
export const standardSignature = (secret: string, id: string, timestamp: number, body: string) => {
  const encoded = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret;
  const key = Buffer.from(encoded, 'base64');
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
};

export interface SignedParts {
  secret: string;
  /** The one before it, while both are to be accepted. */
  previousSecret?: string | null;
  deliveryId: string;
  event: string;
  /** Unix seconds, of this attempt. */
  timestamp: number;
  body: string;
}

/** The headers that sign an attempt: ours, one for each signature, and Standard Webhooks', which list them. */
export const signatureHeaders = (parts: SignedParts): Record<string, string> => {
  const { secret, previousSecret = null, deliveryId, event, timestamp, body } = parts;
  const headers = {
    'X-Service-Event': event,
    'X-Service-Delivery': deliveryId,
    'X-Service-Timestamp': String(timestamp),
    'X-Service-Signature': serviceSignature(secret, timestamp, body),
    'webhook-id': deliveryId,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': standardSignature(secret, deliveryId, timestamp, body),
  };
  if (previousSecret === null) return headers;
  headers['webhook-signature'] +=
    ` ${standardSignature(previousSecret, deliveryId, timestamp, body)}`;
  const previous = serviceSignature(previousSecret, timestamp, body);
  return { ...headers, 'X-Service-Signature-Previous': previous };
};

/** Headers that frame the request or sign it: no hook may set them. */
const UNHOOKED =
  /^(x-service-.*|webhook-.*|host|content-length|transfer-encoding|connection|keep-alive|proxy-.*|te|trailer|upgrade|expect|content-encoding)$/i;

/** Headers whose values are credentials, by their name: sent, and shown as `***` in the log. */
const SECRET =
  /auth(?!or(?!i[sz]))|cookie|token|secret|passw|pwd|session|jwt|api[-_]?key|access[-_]?key|private[-_]?key|(?:^|[-_])key$/i;

/** Names that sound like it and hold none; the signatures are the log's own matter. */
const HARMLESS =
  /^(?:x-service-.*|webhook-.*|idempotency-key|(?:www|proxy)-authenticate|access-control-.*)$/i;

/** A value that is a credential as a whole: `Bearer …`, `Basic …` and the like. */
const CREDENTIAL = /^\s*(?:bearer|basic|digest|negotiate|token|apikey|aws4-hmac-sha256)\s+\S/i;

/** The headers that a request-args handler may set, from its result. The content type stays JSON, as the body is. */
export const keepFreeHeaders = (headers: unknown): Record<string, string> => {
  const free: Record<string, string> = {};
  for (const [name, value] of Object.entries((headers ?? {}) as Record<string, unknown>)) {
    if (UNHOOKED.test(name.trim()) || value === undefined || value === null) continue;
    if (/^content-type$/i.test(name.trim())) continue;
    free[name] = String(value);
  }
  free['Content-Type'] = 'application/json';
  return free;
};

/** Names and values are the same from post to post: what was judged need not be judged again. */
const KEPT = 500;
const LONGEST_KEPT = 200;

/** @param keeps whether an answer may stay in memory; a credential may not */
const remembered = <T>(judge: (text: string) => T, keeps: (text: string, answer: T) => boolean) => {
  const known = new Map<string, T>();
  return (text: string): T => {
    const before = known.get(text);
    if (before !== undefined) return before;
    const answer = judge(text);
    if (text.length <= LONGEST_KEPT && keeps(text, answer)) {
      if (known.size >= KEPT) known.clear();
      known.set(text, answer);
    }
    return answer;
  };
};

const judgeName = remembered(
  (name) => (HARMLESS.test(name) ? 'harmless' : SECRET.test(name) ? 'secret' : 'unknown'),
  () => true
);

const judgeValue = remembered(
  (value) => (CREDENTIAL.test(value) ? REDACTED : redactText(value)),
  (value, shown) => value === shown
);

const redactValue = (name: string, value: string): string => {
  const kind = judgeName(name);
  if (kind === 'harmless') return value;
  return kind === 'secret' ? REDACTED : judgeValue(value);
};

/**
 * Request or answer headers for the log: credentials are `***`, by name or value (a `Bearer` scheme, a token in a URL).
 * @param own the names of the webhook's own headers, whose values are not shown at all
 */
export const redactHeaders = (headers: Record<string, string>, own: readonly string[] = []) => {
  const hidden = new Set(own.map((name) => name.toLowerCase()));
  const shown: Record<string, string> = {};
  for (const name of Object.keys(headers)) {
    const isHidden = hidden.size > 0 && hidden.has(name.toLowerCase());
    const value = isHidden ? REDACTED : redactValue(name, headers[name] ?? '');
    // The name `__proto__` is a header like any other, and never the object's prototype.
    if (name === '__proto__') Object.defineProperty(shown, name, { value, enumerable: true });
    else shown[name] = value;
  }
  return shown;
};

/** Reserved names: they describe body, sender and connection. docs/contract-webhooks.md#headers-of-its-own */
const RESERVED =
  /^(?:host|content-.*|x-service-.*|webhook-.*|transfer-encoding|connection|keep-alive|proxy-.*|te|trailer|upgrade|expect)$/i;

/** A token of RFC 9110. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i;

/** Text of one byte a character; line breaks and other control characters end headers. */
const VALUE = /^[\x20-\x7e\xa0-\xff]*$/;

/** Echoes of less are found everywhere. */
const SHORTEST_ECHO = 8;

/** A problem of one header; `name` is null if it is about all of them. */
export interface HeaderProblem {
  name: string | null;
  wrong: Refusal;
}

const isName = (name: string): boolean =>
  TOKEN.test(name) && name.length <= HEADER_LIMITS.name && name !== '__proto__';

const shown = (name: string): string => name.slice(0, 64).replace(/[^\x20-\x7e]/g, '?');

const judgeOne = (name: string, value: string): Refusal | null => {
  const wrong = (message: string, code: RefusalCode) =>
    refusal(message, code, { name: shown(name) });
  if (!isName(name)) return wrong('is not a valid header name', 'header_name');
  if (RESERVED.test(name)) {
    return wrong('is set by the site and cannot be replaced', 'header_reserved');
  }
  if (value.trim() === '') return wrong('must have a value', 'header_value');
  if (value.length > HEADER_LIMITS.value) {
    return wrong(`must have at most ${HEADER_LIMITS.value} characters`, 'header_value');
  }
  if (VALUE.test(value)) return null;
  const latin = 'must be text of Latin-1 without line breaks and other control characters';
  return wrong(latin, 'header_value');
};

export const judgeHeaders = (headers: Readonly<Record<string, string>>): HeaderProblem[] => {
  const entries = Object.entries(headers);
  const { most, total } = HEADER_LIMITS;
  if (entries.length > most) {
    const wrong = refusal(`must be at most ${most}`, 'too_many', { maximum: most });
    return [{ name: null, wrong }];
  }
  const problems: HeaderProblem[] = [];
  const seen = new Set<string>();
  for (const [name, value] of entries) {
    const lower = name.toLowerCase();
    const wrong = seen.has(lower)
      ? refusal('is named twice; upper and lower case are one name', 'named_twice')
      : judgeOne(name, value);
    seen.add(lower);
    if (wrong) problems.push({ name: shown(name), wrong });
  }
  const length = entries.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  if (problems.length === 0 && length > total) {
    const message = `must have at most ${total} characters together`;
    problems.push({ name: null, wrong: refusal(message, 'headers_large', { maximum: total }) });
  }
  return problems;
};

const has = (names: readonly string[], name: string): boolean =>
  names.some((one) => one.toLowerCase() === name.toLowerCase());

/** The names whose values stay as they are: `***` stands for what is not shown. */
export const keptNames = (given: Readonly<Record<string, string>>): string[] =>
  Object.entries(given).flatMap(([name, value]) => (value.trim() === KEPT_VALUE ? [name] : []));

/** Refuses to keep the value of a header that the webhook does not have. */
export const judgeKept = (given: Readonly<Record<string, string>>, present: readonly string[]) => {
  const name = keptNames(given).find((one) => !has(present, one));
  if (name === undefined) return null;
  const message = `${name} is ${KEPT_VALUE}, which keeps a value that is there, and there is none`;
  return refusal(message, 'header_unknown', { name });
};

/** The posted headers: a webhook's own, unless hooks set that name; `free` is what hooks left. */
export const withOwnHeaders = (
  free: Record<string, string>,
  own: Readonly<Record<string, string>>
): Record<string, string> => {
  const names = Object.keys(free);
  const added = Object.entries(own).filter(([name]) => !has(names, name));
  return Object.assign({}, free, Object.fromEntries(added));
};

/** The values, and what follows the scheme in one such as `Bearer …`; as JSON has them, too. */
const traces = (own: Readonly<Record<string, string>>): string[] => {
  const texts = Object.values(own).flatMap((value) => {
    const credential = /^\S+\s+(\S.*)$/.exec(value)?.[1];
    return credential === undefined ? [value] : [value, credential];
  });
  const forms = texts.flatMap((text) => [text, JSON.stringify(text).slice(1, -1)]);
  return [...new Set(forms)].filter((text) => text.length >= SHORTEST_ECHO);
};

/** Takes the values of own headers out of what a receiver answered: some answer what they were sent. */
export const hideEchoes = (own: Readonly<Record<string, string>>): ((text: string) => string) => {
  const found = traces(own);
  return (text) => found.reduce((left, trace) => left.replaceAll(trace, KEPT_VALUE), text);
};
