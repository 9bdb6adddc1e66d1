import { bytesOf, isKind, kindOf } from './records.mjs';
import { pause, retryDelay } from './retry.mjs';

const IDLE_MS = 60_000;

/**
 * Refusals of the record itself: it is put aside with the answer, and the next ones go on. Not 401,
 * 404 or a page of some gateway: those are about the till or the network, every record would get
 * the same, and a day's sales must not be put aside because a clock was wrong.
 */
const UNFIT = new Set([400, 403, 413, 415, 422]);
const isUnfit = ({ status, body }) => UNFIT.has(status) && Boolean(body);

/**
 * Records wait in a store, in order, as their exact bytes. `add` resolves when the record is kept;
 * `run` sends in that order and removes what was accepted. A crash at any moment loses nothing:
 * what was sent and not yet removed is sent again, and is a duplicate.
 *
 * A store (`file-store.mjs`, `database-store.mjs`) has `add(kind, bytes)`, which resolves with a
 * name that sorts behind all others, `waiting()` and `refused()` with sorted names, `read(name)`,
 * `remove(name)`, `putAside(name, answer)` and `takeBack(name)`, to the end of the queue.
 * `alone` keeps others from sending of the same store meanwhile; `warn` tells the program's author.
 */
export class OfflineQueue {
  #till;
  #store;
  #alone;
  #warn;
  #onSettled;
  #random;
  #now;
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

  /** Writes a record down. Records keep the order of the calls. */
  async add(kind, record) {
    if (!isKind(kind)) throw new TypeError(`there is no record of kind ${kind}`);
    const bytes = bytesOf(record).slice();
    return this.#inTurn(async () => {
      const name = await this.#store.add(kind, bytes);
      this.#bell.abort();
      return name;
    });
  }

  /** Names of the records that wait, oldest first. */
  pending() {
    return this.#store.waiting();
  }

  /** Names of the records that were put aside; the answer to each is kept with it. */
  refused() {
    return this.#store.refused();
  }

  /** Puts what was put aside at the end of the queue, once its cause is mended. */
  async requeue() {
    const names = await this.refused();
    for (const name of names) await this.#inTurn(() => this.#store.takeBack(name));
    if (names.length > 0) this.#bell.abort();
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
    const kind = kindOf(name);
    const body = await this.#store.read(name);
    // Another window of the same browser was quicker.
    if (body === null) return null;
    let answer;
    try {
      answer = await this.#till.send(kind, body);
    } catch (error) {
      const outcome = await this.#settleFailure(name, error);
      this.#tell({ outcome, kind, name, body, error });
      return outcome === 'waiting' ? error : null;
    }
    await this.#store.remove(name);
    this.#tell({ outcome: 'accepted', kind, name, body, answer });
    return null;
  }

  async #settleFailure(name, error) {
    if (error.status === 409 && error.body) {
      // A newer count was accepted: this one has nothing to say any more.
      await this.#store.remove(name);
      return 'stale';
    }
    // No network, a busy service, wrong credentials: the record waits, and so do those behind it.
    if (!isUnfit(error)) return 'waiting';
    const { status, body } = error;
    const at = new Date(this.#now()).toISOString();
    await this.#store.putAside(name, { status, at, ...body });
    return 'refused';
  }

  /** What the till's own program does with the news must not stop the queue. */
  #tell(settlement) {
    try {
      this.#onSettled(settlement);
    } catch (error) {
      this.#warn(`onSettled threw: ${error?.message}`);
    }
  }
}
