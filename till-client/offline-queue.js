'use strict';

const fs = require('node:fs/promises');
const path = require('node:path');
const { pause, retryDelay } = require('./retry.js');

const NAME = /^(\d{12})\.(sale|refund|inventory)\.json$/;

/** Refusals after which the record itself must be mended; it is put aside, the next ones go on. */
const isUnfit = (status) => status === 400 || status === 413 || status === 415;

/**
 * Records wait in a folder, one file each, named in order, holding the exact bytes. `add` resolves
 * when the record is on the disk; `run` sends in that order and removes what was accepted. A crash
 * at any moment loses nothing: what was sent and not yet removed is sent again, and is a duplicate.
 * One process a folder.
 */
class OfflineQueue {
  #till;
  #folder;
  #onSettled;
  #random;
  #next = null;
  #adding = Promise.resolve();
  #stopped = new AbortController();
  #bell = new AbortController();
  #running = null;

  constructor({ till, folder, onSettled = () => {}, random = Math.random }) {
    if (!folder) throw new TypeError('folder is needed');
    this.#till = till;
    this.#folder = path.resolve(folder);
    this.#onSettled = onSettled;
    this.#random = random;
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
  add(kind, record) {
    const text = typeof record === 'string' ? record : JSON.stringify(record);
    const added = this.#adding.then(() => this.#write(kind, text));
    this.#adding = added.catch(() => {});
    return added;
  }

  /** Names of the records that wait, oldest first. */
  async pending() {
    try {
      return (await fs.readdir(this.#folder)).filter((name) => NAME.test(name)).sort();
    } catch (error) {
      if (error.code === 'ENOENT') return [];
      throw error;
    }
  }

  /** Starts sending; goes on until `stop`. */
  run() {
    this.#running ??= this.#loop();
    return this;
  }

  /** Resolves when the record under way has been answered. What waits stays on the disk. */
  async stop() {
    this.#stopped.abort();
    this.#bell.abort();
    await this.#running;
  }

  async #write(kind, text) {
    await fs.mkdir(this.#folder, { recursive: true });
    if (this.#next === null) {
      const aside = await fs.readdir(path.join(this.#folder, 'refused')).catch(() => []);
      const names = [...(await this.pending()), ...aside.filter((name) => NAME.test(name))];
      const numbers = names.map((name) => Number(NAME.exec(name)[1]));
      this.#next = Math.max(0, ...numbers) + 1;
    }
    const name = `${String(this.#next).padStart(12, '0')}.${kind}.json`;
    const temporary = path.join(this.#folder, `${name}.part`);
    const file = await fs.open(temporary, 'w', 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await fs.rename(temporary, path.join(this.#folder, name));
    await this.#syncFolder();
    this.#next += 1;
    this.#bell.abort();
    return name;
  }

  /** A rename is on the disk only when its folder is. Not every system lets a folder be synced. */
  async #syncFolder() {
    try {
      const folder = await fs.open(this.#folder, 'r');
      await folder.sync().finally(() => folder.close());
    } catch {
      // Windows.
    }
  }

  async #loop() {
    let failures = 0;
    while (!this.#stopped.signal.aborted) {
      this.#bell = new AbortController();
      const [name] = await this.pending();
      if (!name) {
        await pause(60_000, this.#bell.signal);
        continue;
      }
      const waitMs = await this.#sendOne(name, failures + 1);
      failures = waitMs === null ? 0 : failures + 1;
      if (waitMs !== null) await pause(waitMs, this.#stopped.signal);
    }
  }

  /** @returns milliseconds to wait before the same record is tried again; null: it is done with. */
  async #sendOne(name, attempt) {
    const [, , kind] = NAME.exec(name);
    const file = path.join(this.#folder, name);
    const body = await fs.readFile(file);
    try {
      const answer = await this.#till.send(kind, body);
      await fs.rm(file, { force: true });
      this.#onSettled({ outcome: 'accepted', kind, name, body, answer });
      return null;
    } catch (error) {
      if (error.status === 409) {
        // A newer count was accepted: this one has nothing to say any more.
        await fs.rm(file, { force: true });
        this.#onSettled({ outcome: 'stale', kind, name, body, error });
        return null;
      }
      if (isUnfit(error.status)) {
        await fs.mkdir(path.join(this.#folder, 'refused'), { recursive: true });
        await fs.rename(file, path.join(this.#folder, 'refused', name));
        this.#onSettled({ outcome: 'refused', kind, name, body, error });
        return null;
      }
      // No network, a busy service, wrong credentials: the record waits, and so do those behind it.
      this.#onSettled({ outcome: 'waiting', kind, name, body, error });
      return retryDelay(attempt, error.retryAfterMs, this.#random);
    }
  }
}

exports.OfflineQueue = OfflineQueue;
