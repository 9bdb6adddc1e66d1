'use strict';

/**
 * A client for tills, without dependencies: signs, sends, tries again, and keeps what could not be
 * sent on disk, in order. docs/tills.md describes the wire; index.d.ts the shapes.
 */

const { createHmac } = require('node:crypto');
const { OfflineQueue } = require('./offline-queue.js');
const { pause, readRetryAfter, retryDelay } = require('./retry.js');

const KINDS = new Set(['sale', 'refund', 'inventory']);

/** `X-POS-Signature` of these exact bytes. */
const sign = ({ secret, timestamp, body }) => {
  const hmac = createHmac('sha256', secret).update(`${timestamp}\n`, 'utf8').update(body);
  return `sha256=${hmac.digest('hex')}`;
};

/** The service refused a record, or could not be reached in time. */
class TillError extends Error {
  constructor(
    message,
    { status = null, code = 'unreachable', body = null, retryable, cause } = {}
  ) {
    super(message, { cause });
    this.name = 'TillError';
    this.status = status;
    this.code = code;
    this.body = body;
    /** Whether sending the same record again later can help. */
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

class TillClient {
  #options;
  /** What our clock is behind the server's, in seconds; learned from a refusal. */
  #clockOffset = 0;

  constructor(options) {
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
    return this.#attempts(() => this.#request('GET', '/ping'));
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

  /**
   * Sends a record, as often as it takes. A string or Buffer goes out as it is; anything else is
   * serialised once. Retries carry the very same bytes, so nothing is ever counted twice.
   */
  send(kind, record) {
    if (!KINDS.has(kind)) throw new TypeError(`there is no record of kind ${kind}`);
    const isBytes = typeof record === 'string' || Buffer.isBuffer(record);
    const body = Buffer.from(isBytes ? record : JSON.stringify(record));
    return this.#attempts(() => this.#request('POST', `/${kind}`, body));
  }

  async #attempts(request) {
    const { tries, maxWaitMs, random, pause: wait } = this.#options;
    let corrected = false;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await request();
      } catch (error) {
        if (!(error instanceof TillError)) throw error;
        // A wrong clock is told once and for all: sign with the server's time from now on.
        const skew = error.code === 'timestamp_outside_window' ? error.body?.skew_seconds : null;
        if (Number.isInteger(skew) && !corrected) {
          corrected = true;
          this.#clockOffset -= skew;
          continue;
        }
        if (!error.retryable || attempt >= tries || error.retryAfterMs > maxWaitMs) throw error;
        await wait(retryDelay(attempt, error.retryAfterMs, random));
      }
    }
  }

  #headers(body) {
    const { key, secret, now } = this.#options;
    const headers = { 'X-POS-Key': key };
    if (body === undefined) return headers;
    const timestamp = String(Math.floor(now() / 1000) + this.#clockOffset);
    headers['Content-Type'] = 'application/json';
    headers['X-POS-Timestamp'] = timestamp;
    headers['X-POS-Signature'] = sign({ secret, timestamp, body });
    return headers;
  }

  async #request(method, path, body) {
    const { url, timeoutMs, fetch, now } = this.#options;
    let response;
    let answer;
    try {
      response = await fetch(`${url}${path}`, {
        method,
        headers: this.#headers(body),
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

const createTill = (options) => new TillClient(options);

/** A till that records first and sends when it can. @see OfflineQueue */
const createOfflineTill = ({ folder, onSettled, ...options }) =>
  new OfflineQueue({ till: createTill({ tries: 1, ...options }), folder, onSettled, ...options });

exports.sign = sign;
exports.TillError = TillError;
exports.createTill = createTill;
exports.createOfflineTill = createOfflineTill;
