import fs from 'node:fs/promises';
import path from 'node:path';
import { removeLeftovers, syncFolder, writeDurably } from './durable-files.mjs';
import { isName, kindOf, nameOf, numberOf } from './records.mjs';

const PRIVATE = { recursive: true, mode: 0o700 };

/** Records in a folder, one file each, for one process alone. What is resolved is on the disk. */
export class FileStore {
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

  /** Not to be called again before it has resolved. */
  async add(kind, bytes) {
    await fs.mkdir(this.#folder, PRIVATE);
    if (this.#next === null) {
      await removeLeftovers(this.#folder);
      const names = [...(await this.waiting()), ...(await this.refused())];
      // Not by Math.max(...): a long outage makes more names than a call may have arguments.
      this.#next = names.reduce((max, name) => Math.max(max, numberOf(name)), 0) + 1;
    }
    const name = nameOf(this.#next, kind);
    await writeDurably(path.join(this.#folder, name), bytes);
    this.#next += 1;
    return name;
  }

  read(name) {
    return fs.readFile(path.join(this.#folder, name));
  }

  async remove(name) {
    await fs.rm(path.join(this.#folder, name), { force: true });
  }

  async putAside(name, answer) {
    await fs.mkdir(this.#aside, PRIVATE);
    await writeDurably(this.#answerFile(name), JSON.stringify(answer, null, 2));
    await fs.rename(path.join(this.#folder, name), path.join(this.#aside, name));
    await syncFolder(this.#aside);
  }

  async takeBack(name) {
    const file = path.join(this.#aside, name);
    await this.add(kindOf(name), await fs.readFile(file));
    await fs.rm(file, { force: true });
    await fs.rm(this.#answerFile(name), { force: true });
  }

  #answerFile(name) {
    return path.join(this.#aside, name.replace(/json$/, 'answer.json'));
  }

  async #namesIn(folder) {
    try {
      return (await fs.readdir(folder)).filter(isName).sort();
    } catch (error) {
      if (error.code === 'ENOENT') return [];
      throw error;
    }
  }
}
