// Made of src/ by scripts/build-till-client.mjs.
'use strict';
var node_crypto = require('node:crypto');
var fs = require('node:fs/promises');
var path = require('node:path');
const BATCH_KINDS = new Set(['sale', 'refund', 'inventory']);
const KINDS = new Set([...BATCH_KINDS, 'closing']);
const isKind = (kind) => KINDS.has(kind);
const isBatchKind = (kind) => BATCH_KINDS.has(kind);
const bytesOf = (record) => {
  if (ArrayBuffer.isView(record)) {
    return new Uint8Array(record.buffer, record.byteOffset, record.byteLength);
  }
  return new TextEncoder().encode(typeof record === 'string' ? record : JSON.stringify(record));
};
const textOf = (record) => {
  if (typeof record === 'string') return record;
  if (!ArrayBuffer.isView(record)) return JSON.stringify(record);
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(record);
};
const enclose = (kind, text) => `{"kind":${JSON.stringify(kind)},"body":${text}}`;
const isSame = (one, other) =>
  one.length === other.length && one.every((byte, index) => byte === other[index]);
const NAME = /^(\d{12})\.(sale|refund|inventory|closing)\.json$/;
const nameOf = (number, kind) => `${String(number).padStart(12, '0')}.${kind}.json`;
const namesOf = (number) => [...KINDS].map((kind) => nameOf(number, kind));
const isName = (text) => NAME.test(text);
const numberOf = (name) => Number(NAME.exec(name)[1]);
const kindOf = (name) => NAME.exec(name)[2];
const FIRST_MS = 500;
const LONGEST_MS = 5 * 6e4;
const retryDelay = (attempt, retryAfterMs = 0, random = Math.random) => {
  const full = Math.min(LONGEST_MS, FIRST_MS * 2 ** (attempt - 1));
  return Math.max(retryAfterMs, full / 2 + (full / 2) * random());
};
const LONGEST_RETRY_AFTER_MS = 60 * 6e4;
const readRetryAfter = (header, nowMs) => {
  if (!header) return undefined;
  const ms = /^\d+$/.test(header) ? Number(header) * 1e3 : Date.parse(header) - nowMs;
  return Number.isNaN(ms) ? undefined : Math.min(LONGEST_RETRY_AFTER_MS, Math.max(0, ms));
};
const pause = (milliseconds, signal) =>
  new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const timer = setTimeout(done, milliseconds);
    function done() {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    }
    signal?.addEventListener('abort', done, { once: true });
  });
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
    this.retryable = retryable ?? true;
  }
}
const isRetryable = (status) => status === 408 || status === 429 || status >= 500;
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
const withDefaults = (defaults, given) => ({
  ...defaults,
  ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
});
class TillClient {
  #options;
  #sign;
  #clockOffset = 0;
  constructor(options, sign) {
    this.#sign = sign;
    const { url, key, secret } = options;
    if (![url, key, secret].every((given) => String(given ?? '').trim())) {
      throw new TypeError('url, key and secret are needed');
    }
    const defaults = {
      timeoutMs: 1e4,
      tries: 5,
      maxWaitMs: 6e4,
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
  closing(record) {
    return this.send('closing', record);
  }
  send(kind, record) {
    if (!isKind(kind)) throw new TypeError(`there is no record of kind ${kind}`);
    return this.#post(`/${kind}`, bytesOf(record));
  }
  batch(records) {
    const entries = records.map(({ kind, body }) => this.#enclosed(kind, body));
    return this.#post('/batch', `{"records":[${entries.join(',')}]}`);
  }
  validate(kind, record) {
    return this.#post('/validate', this.#enclosed(kind, record));
  }
  status(externalIds) {
    return this.#post('/status', JSON.stringify({ external_ids: externalIds }));
  }
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
    const timestamp = String(Math.floor(now() / 1e3) + offset);
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
const UNFINISHED = '.part';
const ABANDONED_MS = 24 * 60 * 6e4;
const PASSING = new Set(['EMFILE', 'ENFILE', 'EAGAIN', 'EBUSY', 'EINTR', 'ENOMEM']);
const isPassing = ({ code }) => PASSING.has(code);
const PAUSES_MS = [10, 30, 90, 270];
const patiently = async (work) => {
  for (const milliseconds of PAUSES_MS) {
    try {
      return await work();
    } catch (error) {
      if (!isPassing(error)) throw error;
      await pause(milliseconds);
    }
  }
  return work();
};
const isThere = (file) =>
  fs.lstat(file).then(
    () => true,
    (error) => {
      if (error.code === 'ENOENT') return false;
      throw error;
    }
  );
const syncFolder = async (folder) => {
  try {
    const handle = await patiently(() => fs.open(folder, 'r'));
    await handle.sync().finally(() => handle.close());
  } catch (error) {
    if (isPassing(error)) throw error;
  }
};
const fill = async (handle, content) => {
  try {
    await handle.writeFile(content);
    await handle.sync();
  } finally {
    await handle.close();
  }
};
const writeDurably = async (file, content) => {
  const temporary = `${file}.${node_crypto.randomUUID()}${UNFINISHED}`;
  await fill(await patiently(() => fs.open(temporary, 'wx', 384)), content);
  await fs.rename(temporary, file);
  await syncFolder(path.dirname(file));
};
const writeClaimed = async ({ claim, isTaken, file }, content) => {
  const temporary = `${claim}${UNFINISHED}`;
  let handle;
  try {
    handle = await patiently(() => fs.open(temporary, 'wx', 384));
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
  try {
    if (await isTaken()) {
      await handle.close();
      await fs.rm(temporary, { force: true });
      return false;
    }
    await fill(handle, content);
    await fs.rename(temporary, file);
  } catch (error) {
    await handle.close().catch(() => {});
    await fs.rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(path.dirname(file));
  return true;
};
const FORMER = /\.json\.part$/;
const removeLeftovers = async (folder, nowMs = Date.now()) => {
  for (const name of await fs.readdir(folder)) {
    if (!name.endsWith(UNFINISHED)) continue;
    const file = path.join(folder, name);
    const { mtimeMs } = await fs.lstat(file).catch(() => ({ mtimeMs: nowMs }));
    const isAbandoned = FORMER.test(name) || nowMs - mtimeMs > ABANDONED_MS;
    if (isAbandoned) await fs.rm(file, { force: true });
  }
};
const PRIVATE = { recursive: true, mode: 448 };
const unlessGone = async (work, otherwise) => {
  try {
    return await work();
  } catch (error) {
    if (error.code === 'ENOENT') return otherwise;
    throw error;
  }
};
class FileStore {
  #folder;
  #aside;
  #next = null;
  constructor(folder) {
    if (!folder) throw new TypeError('folder is needed');
    this.#folder = path.resolve(folder);
    this.#aside = path.join(this.#folder, 'refused');
  }
  waiting() {
    return this.#namesIn(this.#folder);
  }
  refused() {
    return this.#namesIn(this.#aside);
  }
  async add(kind, bytes) {
    await fs.mkdir(this.#folder, PRIVATE);
    if (this.#next === null) {
      await removeLeftovers(this.#folder);
      await this.#skipTaken(0);
    }
    for (;;) {
      const number = this.#next;
      const name = nameOf(number, kind);
      const place = {
        claim: path.join(this.#folder, name.slice(0, name.indexOf('.'))),
        isTaken: () => this.#isTaken(number),
        file: path.join(this.#folder, name),
      };
      if (await writeClaimed(place, bytes)) {
        this.#next = number + 1;
        return name;
      }
      await this.#skipTaken(number);
    }
  }
  read(name) {
    return unlessGone(() => patiently(() => fs.readFile(path.join(this.#folder, name))), null);
  }
  isPassing(error) {
    return isPassing(error);
  }
  async remove(name, bytes) {
    const now = await this.read(name);
    if (now && isSame(now, bytes)) await fs.rm(path.join(this.#folder, name), { force: true });
  }
  async putAside(name, answer) {
    await fs.mkdir(this.#aside, PRIVATE);
    await writeDurably(this.#answerFile(name), JSON.stringify(answer, null, 2));
    const file = path.join(this.#aside, name);
    await unlessGone(() => fs.rename(path.join(this.#folder, name), file));
    await syncFolder(this.#aside);
    if (!(await isThere(file))) await fs.rm(this.#answerFile(name), { force: true });
  }
  async takeBack(name) {
    const file = path.join(this.#aside, name);
    let bytes;
    try {
      bytes = await patiently(() => fs.readFile(file));
    } catch (error) {
      if (isPassing(error)) throw error;
      return false;
    }
    await this.add(kindOf(name), bytes);
    await fs.rm(file, { force: true });
    await fs.rm(this.#answerFile(name), { force: true });
    return true;
  }
  async #skipTaken(number) {
    const names = [...(await this.waiting()), ...(await this.refused())];
    this.#next = names.reduce((max, name) => Math.max(max, numberOf(name)), number) + 1;
  }
  async #isTaken(number) {
    const files = namesOf(number).flatMap((name) => [
      path.join(this.#folder, name),
      path.join(this.#aside, name),
    ]);
    return (await Promise.all(files.map(isThere))).includes(true);
  }
  #answerFile(name) {
    return path.join(this.#aside, name.replace(/json$/, 'answer.json'));
  }
  async #namesIn(folder) {
    return unlessGone(async () => (await fs.readdir(folder)).filter(isName).sort(), []);
  }
}
const IDLE_MS = 6e4;
const UNFIT = new Set([400, 403, 413, 415, 422]);
const isUnfit = ({ status, body }) => UNFIT.has(status) && Boolean(body);
const isOfRoute = (error) => error instanceof TillError && error.status === 404;
const DOUBTS = {
  payload_mismatch: 'Another record was accepted under this external_id',
  simulated: 'It was accepted in test mode, and moves no stock',
};
const doubtful = (code, { status, ...body }) =>
  new TillError(DOUBTS[code], { status, code, body, retryable: false });
class OfflineQueue {
  #till;
  #store;
  #alone;
  #warn;
  #onSettled;
  #random;
  #now;
  #adding = Promise.resolve();
  #stopped = new AbortController();
  #bell = new AbortController();
  #nudge = new AbortController();
  #notBefore = 0;
  #lastError = null;
  #draining = null;
  #running = null;
  #closed = new Map();
  #unreadable = new Set();
  #mode = null;
  constructor({
    till,
    store,
    alone = (work) => work(),
    warn,
    onSettled = () => {},
    random = Math.random,
    now = Date.now,
  }) {
    this.#till = till;
    this.#store = store;
    this.#alone = alone;
    this.#warn = warn;
    this.#onSettled = onSettled;
    this.#random = random;
    this.#now = now;
  }
  sale(record) {
    return this.add('sale', record);
  }
  refund(record) {
    return this.add('refund', record);
  }
  inventory(record) {
    return this.add('inventory', record);
  }
  closing(record) {
    return this.add('closing', record);
  }
  async add(kind, record) {
    if (!isKind(kind)) throw new TypeError(`there is no record of kind ${kind}`);
    const bytes = bytesOf(record).slice();
    return this.#inTurn(async () => {
      const name = await this.#store.add(kind, bytes);
      this.#bell.abort();
      return name;
    });
  }
  pending() {
    return this.#store.waiting();
  }
  refused() {
    return this.#store.refused();
  }
  async requeue() {
    let taken = 0;
    for (const name of await this.refused()) {
      if (await this.#inTurn(() => this.#store.takeBack(name))) taken += 1;
    }
    if (taken > 0) this.#bell.abort();
    return taken;
  }
  run() {
    this.#running ??= this.#loop();
    return this;
  }
  async flush() {
    let result = { sent: 0, error: this.#lastError };
    if (this.#now() >= this.#notBefore) {
      this.#closed.clear();
      result = await this.#drain();
    }
    if (result.error === null) this.#nudge.abort();
    return { ...result, remaining: (await this.pending()).length };
  }
  async stop() {
    this.#stopped.abort();
    this.#bell.abort();
    this.#nudge.abort();
    await this.#running;
    await this.#draining;
  }
  #inTurn(work) {
    const done = this.#adding.then(work);
    this.#adding = done.catch(() => {});
    return done;
  }
  async #loop() {
    let failures = 0;
    let routeFailures = 0;
    let reopenAt = 0;
    while (!this.#stopped.signal.aborted) {
      this.#bell = new AbortController();
      this.#nudge = new AbortController();
      const isReopened = performance.now() >= reopenAt;
      if (isReopened) this.#closed.clear();
      const { sent, error } = await this.#drain();
      if (this.#stopped.signal.aborted) return;
      if (error === null) {
        failures = routeFailures = 0;
        await pause(IDLE_MS, this.#bell.signal);
      } else if (isOfRoute(error)) {
        failures = 0;
        if (isReopened) {
          routeFailures += 1;
          const delay = retryDelay(routeFailures, error.retryAfterMs, this.#random);
          reopenAt = performance.now() + delay;
        }
        await pause(Math.max(0, reopenAt - performance.now()), this.#bell.signal);
      } else {
        failures = sent > 0 ? 1 : failures + 1;
        await pause(retryDelay(failures, error.retryAfterMs, this.#random), this.#nudge.signal);
      }
    }
  }
  #drain() {
    this.#draining ??= this.#alone(() => this.#sendAll())
      .catch((error) => ({ sent: 0, error }))
      .then((result) => {
        this.#draining = null;
        this.#lastError = result.error;
        this.#notBefore = this.#now() + (result.error?.retryAfterMs ?? 0);
        return result;
      });
    return this.#draining;
  }
  async #sendAll() {
    let sent = 0;
    this.#mode = null;
    for (;;) {
      const held = new Set();
      const before = sent;
      for (const name of await this.pending()) {
        if (this.#stopped.signal.aborted) return { sent, error: null };
        if (this.#unreadable.has(name)) continue;
        if (this.#isHeld(kindOf(name), held)) {
          held.add(kindOf(name));
          continue;
        }
        const error = await this.#sendOne(name);
        if (!error) sent += 1;
        else if (!isOfRoute(error)) return { sent, error };
        else {
          this.#closed.set(kindOf(name), error);
          held.add(kindOf(name));
        }
      }
      if (sent > before) continue;
      const [first = null] = [...held].flatMap((kind) => this.#closed.get(kind) ?? []);
      return { sent, error: first };
    }
  }
  #isHeld(kind, held) {
    if (this.#closed.has(kind)) return true;
    return kind === 'closing' && (held.has('sale') || held.has('refund') || held.has('closing'));
  }
  async #sendOne(name) {
    const kind = kindOf(name);
    let body;
    try {
      body = await this.#store.read(name);
    } catch (error) {
      if (this.#store.isPassing(error)) throw error;
      await this.#setUnreadableAside(name, error);
      return null;
    }
    if (body === null) return null;
    let answer;
    try {
      answer = await this.#till.send(kind, body);
      await this.#requireAcceptance(answer);
    } catch (error) {
      const outcome = await this.#settleFailure(name, body, error);
      this.#tell({ outcome, kind, name, body, error });
      return outcome === 'waiting' ? error : null;
    }
    await this.#store.remove(name, body);
    this.#tell({ outcome: 'accepted', kind, name, body, answer });
    return null;
  }
  async #requireAcceptance(answer) {
    if (answer.payload_mismatch === true) throw doubtful('payload_mismatch', answer);
    const isTrial = answer.state === 'simulated' || answer.mode === 'test';
    if (!isTrial) return;
    this.#mode ??= (await this.#till.ping()).mode;
    if (this.#mode === 'live') throw doubtful('simulated', answer);
  }
  async #setUnreadableAside(name, error) {
    const at = new Date(this.#now()).toISOString();
    const answer = { status: null, at, code: 'unreadable', message: error.message };
    try {
      await this.#store.putAside(name, answer);
    } catch {
      this.#unreadable.add(name);
    }
    this.#tell({ outcome: 'unreadable', kind: kindOf(name), name, body: bytesOf(''), error });
  }
  async #settleFailure(name, sent, error) {
    if (error.status === 409 && error.body) {
      await this.#store.remove(name, sent);
      return 'stale';
    }
    if (!isUnfit(error) && !Object.hasOwn(DOUBTS, error.code)) return 'waiting';
    const { status, body } = error;
    const at = new Date(this.#now()).toISOString();
    await this.#store.putAside(name, { status, at, ...body });
    return 'refused';
  }
  #tell(settlement) {
    try {
      this.#onSettled(settlement);
    } catch (error) {
      this.#warn(`onSettled threw: ${error?.message}`);
    }
  }
}
const sign = ({ secret, timestamp, body }) => {
  const hmac = node_crypto
    .createHmac('sha256', secret)
    .update(
      `${timestamp}
`,
      'utf8'
    )
    .update(body);
  return `sha256=${hmac.digest('hex')}`;
};
const createTill = (options) => new TillClient(options, sign);
const createOfflineTill = ({ folder, onSettled, ...options }) =>
  new OfflineQueue({
    till: createTill({ tries: 1, ...options }),
    store: new FileStore(folder),
    warn: (message) => process.emitWarning(message, 'TillWarning'),
    onSettled,
    random: options.random,
    now: options.now,
  });
exports.TillError = TillError;
exports.createOfflineTill = createOfflineTill;
exports.createTill = createTill;
exports.sign = sign;
