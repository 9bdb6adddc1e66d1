import { REDACTED, redactText } from '../../runtime/text';

/** Headers that frame the request or sign it: no hook may set them. */
const RESERVED =
  /^(x-service-.*|webhook-.*|host|content-length|transfer-encoding|connection|keep-alive|proxy-.*|te|trailer|upgrade|expect|content-encoding)$/i;

/** Headers whose values are credentials, by their name: sent, and shown as `***` in the log. */
const SECRET =
  /auth(?!or(?!i[sz]))|cookie|token|secret|passw|pwd|session|jwt|api[-_]?key|access[-_]?key|private[-_]?key|(?:^|[-_])key$/i;

/** Names that sound like it and hold none; the signatures are the log's own matter. */
const HARMLESS =
  /^(?:x-service-.*|webhook-.*|idempotency-key|(?:www|proxy)-authenticate|access-control-.*)$/i;

/** A value that is a credential as a whole: `Bearer …`, `Basic …` and the like. */
const CREDENTIAL = /^\s*(?:bearer|basic|digest|negotiate|token|apikey|aws4-hmac-sha256)\s+\S/i;

/**
 * The headers a request-args handler may decide about, out of whatever it returned. Always a JSON
 * content type: the body is signed JSON, whatever a handler says.
 */
export const keepFreeHeaders = (headers: unknown): Record<string, string> => {
  const free: Record<string, string> = {};
  for (const [name, value] of Object.entries((headers ?? {}) as Record<string, unknown>)) {
    if (RESERVED.test(name.trim()) || value === undefined || value === null) continue;
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
 * Headers as the log keeps them, of a request or of its answer: credentials are `***`, whether
 * their name tells or their value does (a scheme such as `Bearer`, a token in a URL).
 * @param own the names of the webhook's own headers, whose values are not shown at all
 */
export const redactHeaders = (
  headers: Record<string, string>,
  own: readonly string[] = []
): Record<string, string> => {
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
