'use strict';

const fs = require('node:fs/promises');
const path = require('node:path');
const { removeLeftovers, syncFolder, writeDurably } = require('./durable-files.js');
const { pause, retryDelay } = require('./retry.js');

const NAME = /^(\d{12})\.(sale|refund|inventory)\.json$/;
const IDLE_MS = 60_000;

/**
 * Refusals of the record itself: it is put aside with the answer, and the next ones go on. Not 401,
 * 404 or a page of some gateway: those are about the till or the network, every record would get
 * the same, and a day's sales must not be put aside because a clock was wrong.
 */
const UNFIT = new Set([400, 403, 413, 415, 422]);
const isUnfit = ({ status, body }) => UNFIT.has(status) && Boolean(body);

/**
 * Records wait in a folder, one file each, named in order, holding the exact bytes. `add` resolves
 * when the record is on the disk; `run` sends in that order and removes what was accepted. A crash
 * at any moment loses nothing: what was sent and not yet removed is sent again, and is a duplicate.
 * One process a folder.
 */
class OfflineQueue {
  #till;
  #folder;
  #refused;
  #onSettled;
  #random;
  #now;
  #next = null;
  #adding = Promise.resolve();
  #stopped = new AbortController();
  /** Rung by a new record, while there is nothing to do. */
  #bell = new AbortController();
  /** Rung by `flush`, while the loop waits after a failure. */
  #nudge = new AbortController();
  #notBefore = 0;
  #lastError = null;
  #draining = null;
  #running = null;

  constructor({ till, folder, onSettled = () => {}, random = Math.random, now = Date.now }) {
    if (!folder) throw new TypeError('folder is needed');
    this.#till = till;
    this.#folder = path.resolve(folder);
    this.#refused = path.join(this.#folder, 'refused');
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

  /** Writes a record down. Records keep the order of the calls. */
  async add(kind, record) {
    if (!NAME.test(`000000000000.${kind}.json`)) {
      throw new TypeError(`there is no record of kind ${kind}`);
    }
    const isBytes = typeof record === 'string' || Buffer.isBuffer(record);
    const bytes = Buffer.from(isBytes ? record : JSON.stringify(record));
    return this.#inTurn(() => this.#write(kind, bytes));
  }

  /** Names of the records that wait, oldest first. */
  pending() {
    return this.#namesIn(this.#folder);
  }

  /** Names of the records that were put aside; the answer to each is beside it. */
  refused() {
    return this.#namesIn(this.#refused);
  }

  /** Puts what was put aside at the end of the queue, once its cause is mended. */
  async requeue() {
    const names = await this.refused();
    for (const name of names) {
      const file = path.join(this.#refused, name);
      const bytes = await fs.readFile(file);
      await this.#inTurn(() => this.#write(NAME.exec(name)[2], bytes));
      await fs.rm(file, { force: true });
      await fs.rm(this.#answerFile(name), { force: true });
    }
    return names.length;
  }

  /** Starts sending; goes on until `stop`. */
  run() {
    this.#running ??= this.#loop();
    return this;
  }

  /**
   * Sends what waits now, without the pause after a failure, but never before a `Retry-After`.
   * Resolves when nothing waits any more, or when the first record still has to.
   * @returns {Promise<{ sent: number, remaining: number, error: Error | null }>}
   */
  async flush() {
    let result = { sent: 0, error: this.#lastError };
    if (this.#now() >= this.#notBefore) result = await this.#drain();
    if (result.error === null) this.#nudge.abort();
    return { ...result, remaining: (await this.pending()).length };
  }

  /** Resolves when the record under way has been answered. What waits stays on the disk. */
  async stop() {
    this.#stopped.abort();
    this.#bell.abort();
    this.#nudge.abort();
    await this.#running;
    await this.#draining;
  }

  /** One write at a time, in the order of the calls. */
  #inTurn(work) {
    const done = this.#adding.then(work);
    this.#adding = done.catch(() => {});
    return done;
  }

  async #namesIn(folder) {
    try {
      return (await fs.readdir(folder)).filter((name) => NAME.test(name)).sort();
    } catch (error) {
      if (error.code === 'ENOENT') return [];
      throw error;
    }
  }

  #answerFile(name) {
    return path.join(this.#refused, name.replace(/json$/, 'answer.json'));
  }

  async #write(kind, bytes) {
    await fs.mkdir(this.#folder, { recursive: true, mode: 0o700 });
    if (this.#next === null) {
      await removeLeftovers(this.#folder);
      const names = [...(await this.pending()), ...(await this.refused())];
      // Not by Math.max(...): a long outage makes more names than a call may have arguments.
      const last = names.reduce((max, name) => Math.max(max, Number(NAME.exec(name)[1])), 0);
      this.#next = last + 1;
    }
    const name = `${String(this.#next).padStart(12, '0')}.${kind}.json`;
    await writeDurably(path.join(this.#folder, name), bytes);
    this.#next += 1;
    this.#bell.abort();
    return name;
  }

  async #loop() {
    let failures = 0;
    while (!this.#stopped.signal.aborted) {
      this.#bell = new AbortController();
      this.#nudge = new AbortController();
      const { sent, error } = await this.#drain();
      if (this.#stopped.signal.aborted) return;
      if (error === null) {
        failures = 0;
        await pause(IDLE_MS, this.#bell.signal);
      } else {
        failures = sent > 0 ? 1 : failures + 1;
        await pause(retryDelay(failures, error.retryAfterMs, this.#random), this.#nudge.signal);
      }
    }
  }

  /** The loop and `flush` share what is under way: a record is sent by one of them. */
  #drain() {
    this.#draining ??= this.#sendAll()
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
    for (;;) {
      const names = await this.pending();
      if (names.length === 0) return { sent, error: null };
      for (const name of names) {
        if (this.#stopped.signal.aborted) return { sent, error: null };
        const error = await this.#sendOne(name);
        if (error) return { sent, error };
        sent += 1;
      }
    }
  }

  /** @returns why the record must wait; null: it is done with. */
  async #sendOne(name) {
    const kind = NAME.exec(name)[2];
    const file = path.join(this.#folder, name);
    const body = await fs.readFile(file);
    let answer;
    try {
      answer = await this.#till.send(kind, body);
    } catch (error) {
      const outcome = await this.#settleFailure(name, file, error);
      this.#tell({ outcome, kind, name, body, error });
      return outcome === 'waiting' ? error : null;
    }
    await fs.rm(file, { force: true });
    this.#tell({ outcome: 'accepted', kind, name, body, answer });
    return null;
  }

  async #settleFailure(name, file, error) {
    if (error.status === 409 && error.body) {
      // A newer count was accepted: this one has nothing to say any more.
      await fs.rm(file, { force: true });
      return 'stale';
    }
    // No network, a busy service, wrong credentials: the record waits, and so do those behind it.
    if (!isUnfit(error)) return 'waiting';
    await fs.mkdir(this.#refused, { recursive: true, mode: 0o700 });
    const { status, body } = error;
    const at = new Date(this.#now()).toISOString();
    await writeDurably(this.#answerFile(name), JSON.stringify({ status, at, ...body }, null, 2));
    await fs.rename(file, path.join(this.#refused, name));
    await syncFolder(this.#refused);
    return 'refused';
  }

  /** What the till's own program does with the news must not stop the queue. */
  #tell(settlement) {
    try {
      this.#onSettled(settlement);
    } catch (error) {
      process.emitWarning(`onSettled threw: ${error?.message}`, 'TillWarning');
    }
  }
}

exports.OfflineQueue = OfflineQueue;
