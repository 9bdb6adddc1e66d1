import { TillError } from './client.mjs';
import { bytesOf, isKind, kindOf } from './records.mjs';
import { pause, retryDelay } from './retry.mjs';

const IDLE_MS = 60_000;

/**
 * Refusals of the record itself: it is kept apart with the answer, and the next ones are sent. Not 401,
 * 404 or a page of some gateway: those are about the till or the network, every record would get
 * the same, and a day's sales must not be refused because a clock was wrong.
 */
const UNFIT = new Set([400, 403, 413, 415, 422]);
const isUnfit = ({ status, body }) => UNFIT.has(status) && Boolean(body);

/** The site has no such route, or not yet: what other routes take need not wait for it. */
const isOfRoute = (error) => error instanceof TillError && error.status === 404;

/** Answers that say "I have it" of something else than this record of a live till. */
const DOUBTS = {
  payload_mismatch: 'Another record was accepted under this external_id',
  simulated: 'It was accepted in test mode, and moves no stock',
};
const doubtful = (code, { status, ...body }) =>
  new TillError(DOUBTS[code], { status, code, body, retryable: false });

/**
 * Records wait in a store, in order, as their exact bytes. `add` resolves when the record is kept;
 * `run` sends in that order and removes what was accepted. A crash at any moment loses nothing:
 * what was sent and not yet removed is sent again, and is a duplicate.
 *
 * A store (`file-store.mjs`, `database-store.mjs`) has `add(kind, bytes)`, which resolves with a
 * name that sorts behind all others, `waiting()` and `refused()` with sorted names, `read(name)`,
 * `isPassing(error)` of a read that failed, `remove(name, bytes)`, `putAside(name, answer)` and
 * `takeBack(name)`, to the end of the queue, which says whether it could.
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
  /** Rung by a new record, while there is nothing to do, or nothing else than on a closed route. */
  #bell = new AbortController();
  /** Rung by `flush`, while the loop waits after a failure. */
  #nudge = new AbortController();
  #notBefore = 0;
  #lastError = null;
  #draining = null;
  #running = null;
  /** Kinds whose route answered 404, with that error; not asked again before their time. */
  #closed = new Map();
  /** Records that could neither be read nor be moved to the refused ones. */
  #unreadable = new Set();
  /** `live` or `test`, asked once where it matters. */
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

  /** Names of the refused records; the answer to each is kept with it. */
  refused() {
    return this.#store.refused();
  }

  /** Puts the refused records at the end of the queue, once their cause is fixed. */
  async requeue() {
    let taken = 0;
    for (const name of await this.refused()) {
      if (await this.#inTurn(() => this.#store.takeBack(name))) taken += 1;
    }
    if (taken > 0) this.#bell.abort();
    return taken;
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
    if (this.#now() >= this.#notBefore) {
      this.#closed.clear();
      result = await this.#drain();
    }
    if (result.error === null) this.#nudge.abort();
    return { ...result, remaining: (await this.pending()).length };
  }

  /** Resolves when the record under way has been answered. Waiting records stay on the disk. */
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
      // Something may have come meanwhile.
      if (sent > before) continue;
      const [first = null] = [...held].flatMap((kind) => this.#closed.get(kind) ?? []);
      return { sent, error: first };
    }
  }

  /** Its route is closed, or it is a closing and records that it speaks of wait before it. */
  #isHeld(kind, held) {
    if (this.#closed.has(kind)) return true;
    return kind === 'closing' && (held.has('sale') || held.has('refund') || held.has('closing'));
  }

  /** @returns why the record must wait; null: it is done with. */
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
    // Another window of the same browser, or another process, was quicker.
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

  /**
   * @throws TillError if the site has another record of this id, or has it from a test though the till
   * is live; or if the site cannot be asked
   */
  async #requireAcceptance(answer) {
    if (answer.payload_mismatch === true) throw doubtful('payload_mismatch', answer);
    // Before it was worked on, and while a refund waits for its sale, a trial is not `simulated` yet.
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
      // A newer count was accepted: this one has nothing to say any more.
      await this.#store.remove(name, sent);
      return 'stale';
    }
    // No network, a busy service, wrong credentials: the record waits, and so do those behind it.
    if (!isUnfit(error) && !Object.hasOwn(DOUBTS, error.code)) return 'waiting';
    const { status, body } = error;
    const at = new Date(this.#now()).toISOString();
    await this.#store.putAside(name, { status, at, ...body });
    return 'refused';
  }

  /** An error of the till's own handler must not stop the queue. */
  #tell(settlement) {
    try {
      this.#onSettled(settlement);
    } catch (error) {
      this.#warn(`onSettled threw: ${error?.message}`);
    }
  }
}
