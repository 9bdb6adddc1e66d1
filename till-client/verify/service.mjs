import till from '../index.js';

const WAITS = 3;
const LONGEST_WAIT_S = 70;
const TIMEOUT_MS = 30_000;

/** What the service does not keep; its message is the line that says so. */
export class Broken extends Error {}

/** What cannot be tried with this connection or at this service. */
export class NotTried extends Error {}

const shown = (value) => {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
};

const is = (expected, actual) =>
  typeof expected === 'function' ? expected(actual) : Object.is(expected, actual);

/** Kinds of value, for `expectAnswer`. */
export const some = {
  text: (value) => typeof value === 'string' && value !== '',
  integer: Number.isInteger,
  list: Array.isArray,
  truth: (value) => typeof value === 'boolean',
};

/** An answer has to have this status, and these fields: a value, or a test of it. */
export const expectAnswer = (answer, status, fields = {}) => {
  const { body } = answer;
  const code = body?.code ? ` ${body.code}` : '';
  if (answer.status !== status) throw new Broken(`answers ${answer.status}${code}, not ${status}`);
  if (typeof body !== 'object' || body === null) throw new Broken('answers no JSON object');
  for (const [name, expected] of Object.entries(fields)) {
    if (is(expected, body[name])) continue;
    const wanted = typeof expected === 'function' ? '' : `, not ${shown(expected)}`;
    throw new Broken(`answers ${name} ${shown(body[name])}${wanted}`);
  }
  return body;
};

export const expectThat = (holds, message) => {
  if (!holds) throw new Broken(message);
};

/** A refusal: `ok: false`, its code, a message and perhaps more. */
export const expectRefusal = (answer, status, code, fields = {}) =>
  expectAnswer(answer, status, { ok: false, code, message: some.text, ...fields });

/** Requests as a till makes them, and as it should not. */
export class Service {
  #url;
  #key;
  #secret;
  #ids = 0;
  #run = Math.random().toString(36).slice(2, 10);
  /** What our clock is behind the service's, in seconds. */
  clockOffset = 0;

  constructor({ url, key, secret }) {
    this.#url = url.replace(/\/+$/, '');
    this.#key = key;
    this.#secret = secret;
  }

  now() {
    return Math.floor(Date.now() / 1000) + this.clockOffset;
  }

  /** A time that long ago, as a record has it. */
  time(secondsAgo = 0) {
    return new Date((this.now() - secondsAgo) * 1000).toISOString();
  }

  /** Text that no other run has used. */
  id(what = 'record') {
    this.#ids += 1;
    return `verify-${this.#run}-${what}-${this.#ids}`;
  }

  ping(key = this.#key) {
    return this.#request('GET', '/ping', { 'X-POS-Key': key });
  }

  get(path) {
    return this.#request('GET', path, {});
  }

  /**
   * A signed post. `changes`: `timestamp`, `secret`, `key`, `signedBody` (the bytes that are signed
   * instead of those that are sent), `headers` (undefined takes one away).
   */
  post(path, record, changes = {}) {
    const body = typeof record === 'string' ? record : JSON.stringify(record);
    const timestamp = String(changes.timestamp ?? this.now());
    const { secret = this.#secret, signedBody = body, key = this.#key } = changes;
    const headers = {
      'Content-Type': 'application/json',
      'X-POS-Key': key,
      'X-POS-Timestamp': timestamp,
      'X-POS-Signature': till.sign({ secret, timestamp, body: signedBody }),
      ...changes.headers,
    };
    const sent = Object.entries(headers).filter(([, value]) => value !== undefined);
    return this.#request('POST', path, Object.fromEntries(sent), body);
  }

  /** Waits where the service asks to: being slow down is part of the contract. */
  async #request(method, path, headers, body) {
    for (let wait = 1; ; wait += 1) {
      const response = await fetch(`${this.#url}${path}`, {
        method,
        headers,
        body,
        redirect: 'manual',
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      const text = await response.text();
      const { status } = response;
      if (status !== 429) return { status, body: parsed(text) };
      const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
      expectThat(seconds >= 0, 'answers 429 without a Retry-After in seconds');
      if (wait > WAITS || seconds > LONGEST_WAIT_S) throw new NotTried('the service answers 429');
      await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
    }
  }
}

const parsed = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
};
