import { bytesOf, enclose, isBatchKind, isKind, textOf } from './records.mjs';
import { pause, readRetryAfter, retryDelay } from './retry.mjs';

/** The service refused a record, or could not be reached in time. */
export class TillError extends Error {
  constructor(
    message,
    { status = null, code = 'unreachable', body = null, retryable, cause } = {}
  ) {
    super(message, { cause });
    this.name = 'TillError';
    this.status = status;
    this.code = code;
    this.body = body;
    /** True if sending the same record again later can help. */
    this.retryable = retryable ?? true;
  }
}

const isRetryable = (status) => status === 408 || status === 429 || status >= 500;

/** The service's own answer, or null: a shop's Wi-Fi may put a page of its own in between. */
const readAnswer = async (response) => {
  try {
    const answer = JSON.parse(await response.text());
    const own = response.ok ? answer.ok === true : answer.ok === false && 'code' in answer;
    return own ? answer : null;
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return null;
    throw error;
  }
};

/** An option that is given as undefined is not given. */
const withDefaults = (defaults, given) => ({
  ...defaults,
  ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
});

/**
 * Signs, sends, and sends again. Platform code is passed in: `sign` makes
 * `X-POS-Signature` of a request, at once or later.
 */
export class TillClient {
  #options;
  #sign;
  /** How far our clock is behind the server's, in seconds; learned from a refusal. */
  #clockOffset = 0;

  constructor(options, sign) {
    this.#sign = sign;
    const { url, key, secret } = options;
    if (![url, key, secret].every((given) => String(given ?? '').trim())) {
      throw new TypeError('url, key and secret are needed');
    }
    const defaults = {
      timeoutMs: 10_000,
      tries: 5,
      maxWaitMs: 60_000,
      now: Date.now,
      random: Math.random,
      pause,
      fetch: globalThis.fetch,
    };
    this.#options = { ...withDefaults(defaults, options), url: url.replace(/\/+$/, '') };
  }

  ping() {
    return this.#attempts((offset) => this.#request('GET', '/ping', offset));
  }

  sale(record) {
    return this.send('sale', record);
  }

  refund(record) {
    return this.send('refund', record);
  }

  inventory(record) {
    return this.send('inventory', record);
  }

  /** The till's own sums of a shift; the answer names what is missing and what differs. */
  closing(record) {
    return this.send('closing', record);
  }

  /**
   * Sends a record, as often as it takes. Text or bytes go out as they are; anything else is
   * serialised once. Retries carry the very same bytes, so nothing is ever counted twice.
   */
  send(kind, record) {
    if (!isKind(kind)) throw new TypeError(`there is no record of kind ${kind}`);
    return this.#post(`/${kind}`, bytesOf(record));
  }

  /**
   * Sends up to 100 records, `[{ kind, body }]`, in one request; a body that is text or bytes goes
   * out as it is. Resolves with an answer for each, those that were refused too.
   */
  batch(records) {
    const entries = records.map(({ kind, body }) => this.#enclosed(kind, body));
    return this.#post('/batch', `{"records":[${entries.join(',')}]}`);
  }

  /** Validates a record; nothing is stored. */
  validate(kind, record) {
    return this.#post('/validate', this.#enclosed(kind, record));
  }

  /** States of records, by their ids, in the order of the ids. */
  status(externalIds) {
    return this.#post('/status', JSON.stringify({ external_ids: externalIds }));
  }

  /** A page of items and stock since a cursor; from the beginning without one. */
  catalogue({ cursor, limit } = {}) {
    return this.#post('/catalogue', JSON.stringify({ cursor, limit }));
  }

  #enclosed(kind, record) {
    if (!isBatchKind(kind)) throw new TypeError(`there is no record of kind ${kind}`);
    return enclose(kind, textOf(record));
  }

  #post(path, textOrBytes) {
    const body = bytesOf(textOrBytes);
    return this.#attempts((offset) => this.#request('POST', path, offset, body));
  }

  async #attempts(request) {
    const { tries, maxWaitMs, random, pause: wait } = this.#options;
    let corrected = false;
    for (let attempt = 1; ; attempt += 1) {
      const offset = this.#clockOffset;
      try {
        return await request(offset);
      } catch (error) {
        if (!(error instanceof TillError)) throw error;
        // A wrong clock is told once and for all: sign with the server's time from now on. Others that
        // were under way are told the same of the time that they were signed with.
        const skew = error.code === 'timestamp_outside_window' ? error.body?.skew_seconds : null;
        if (Number.isInteger(skew) && !corrected) {
          corrected = true;
          this.#clockOffset = offset - skew;
          continue;
        }
        if (!error.retryable || attempt >= tries || error.retryAfterMs > maxWaitMs) throw error;
        await wait(retryDelay(attempt, error.retryAfterMs, random));
      }
    }
  }

  async #headers(offset, body) {
    const { key, secret, now } = this.#options;
    const headers = { 'X-POS-Key': key };
    if (body === undefined) return headers;
    const timestamp = String(Math.floor(now() / 1000) + offset);
    headers['Content-Type'] = 'application/json';
    headers['X-POS-Timestamp'] = timestamp;
    headers['X-POS-Signature'] = await this.#sign({ secret, timestamp, body });
    return headers;
  }

  async #request(method, path, offset, body) {
    const { url, timeoutMs, fetch, now } = this.#options;
    const headers = await this.#headers(offset, body);
    let response;
    let answer;
    try {
      response = await fetch(`${url}${path}`, {
        method,
        headers,
        body,
        // A signed record goes to this address and to no other.
        redirect: 'manual',
        signal: AbortSignal.timeout(timeoutMs),
      });
      answer = await readAnswer(response);
    } catch (cause) {
      const reason = cause.cause?.message ?? cause.message;
      throw new TillError(`The service cannot be reached: ${reason}`, { cause });
    }
    const { status } = response;
    if (response.ok && answer) return { status, ...answer };
    const error = new TillError(answer?.message ?? `Not an answer of the service (${status})`, {
      status,
      code: answer?.code ?? `http_${status}`,
      body: answer,
      retryable: isRetryable(status) || status < 400,
    });
    const retryAfterMs = readRetryAfter(response.headers.get('retry-after'), now());
    if (retryAfterMs !== undefined) error.retryAfterMs = retryAfterMs;
    throw error;
  }
}
