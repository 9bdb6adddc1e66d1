import fs from 'node:fs/promises';
import path from 'node:path';
import {
  isPassing,
  isThere,
  patiently,
  removeLeftovers,
  syncFolder,
  writeClaimed,
  writeDurably,
} from './durable-files.mjs';
import { isName, isSame, kindOf, nameOf, namesOf, numberOf } from './records.mjs';

const PRIVATE = { recursive: true, mode: 0o700 };

/** `work`, or `otherwise` where somebody else removed the file. */
const unlessGone = async (work, otherwise) => {
  try {
    return await work();
  } catch (error) {
    if (error.code === 'ENOENT') return otherwise;
    throw error;
  }
};

/**
 * Records in a folder, one file each. A promise resolves once the file is on the disk. Other processes may use the
 * folder too: no number is given twice, and only sent records are removed.
 */
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

  /** @returns {Promise<Buffer | null>} null: it does not wait any more */
  read(name) {
    return unlessGone(() => patiently(() => fs.readFile(path.join(this.#folder, name))), null);
  }

  /** True if a file that cannot be read now may be readable a moment later. */
  isPassing(error) {
    return isPassing(error);
  }

  /** Removes the record that was read, and no other that has come by its name. */
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
    // Another process has sent it meanwhile.
    if (!(await isThere(file))) await fs.rm(this.#answerFile(name), { force: true });
  }

  /** @returns {Promise<boolean>} false: it cannot be read, or another process has taken it back */
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

  /** Goes on behind this number and all that are in use. */
  async #skipTaken(number) {
    const names = [...(await this.waiting()), ...(await this.refused())];
    // Not by Math.max(...): a long outage makes more names than a call may have arguments.
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
