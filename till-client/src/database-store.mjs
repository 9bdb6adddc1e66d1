import { kindOf, nameOf, numberOf } from './records.mjs';

const WAITING = 'waiting';
const REFUSED = 'refused';

const result = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

const open = (name) => {
  const request = indexedDB.open(name, 1);
  request.onupgradeneeded = () => {
    // A number is never given twice, so a refused record keeps its number.
    request.result.createObjectStore(WAITING, { autoIncrement: true }).createIndex('kind', 'kind');
    request.result.createObjectStore(REFUSED).createIndex('kind', 'kind');
  };
  return result(request);
};

/** Records in an IndexedDB database of the page's origin. A promise resolves after the write. */
export class DatabaseStore {
  #name;
  #opened = null;

  constructor(folder) {
    if (!folder) throw new TypeError('folder is needed');
    this.#name = `switchboard-till:${folder}`;
  }

  waiting() {
    return this.#names(WAITING);
  }

  refused() {
    return this.#names(REFUSED);
  }

  async add(kind, bytes) {
    const number = await this.#write(([waiting]) => result(waiting.add({ kind, bytes })));
    return nameOf(number, kind);
  }

  /** @returns {Promise<Uint8Array | null>} null: it does not wait any more */
  async read(name) {
    const store = (await this.#database()).transaction(WAITING).objectStore(WAITING);
    return (await result(store.get(numberOf(name))))?.bytes ?? null;
  }

  /** A page that is being closed, a database that another version opens. */
  isPassing({ name }) {
    return name !== 'NotReadableError' && name !== 'DataError' && name !== 'UnknownError';
  }

  /** By its number, which is never given again. */
  async remove(name) {
    await this.#write(([waiting]) => result(waiting.delete(numberOf(name))));
  }

  async putAside(name, answer) {
    const number = numberOf(name);
    await this.#write(async ([waiting, refused]) => {
      const record = await result(waiting.get(number));
      if (!record) return;
      await result(refused.put({ ...record, answer }, number));
      await result(waiting.delete(number));
    });
  }

  takeBack(name) {
    const number = numberOf(name);
    return this.#write(async ([waiting, refused]) => {
      const record = await result(refused.get(number));
      if (!record) return false;
      await result(waiting.add({ kind: kindOf(name), bytes: record.bytes }));
      await result(refused.delete(number));
      return true;
    });
  }

  async #names(storeName) {
    const index = (await this.#database())
      .transaction(storeName)
      .objectStore(storeName)
      .index('kind');
    const names = [];
    const request = index.openKeyCursor();
    // Keys alone: a day's records are not read to name them.
    await new Promise((resolve, reject) => {
      request.onerror = () => reject(request.error);
      request.onsuccess = () => {
        const cursor = request.result;
        if (!cursor) return resolve();
        names.push(nameOf(cursor.primaryKey, cursor.key));
        cursor.continue();
      };
    });
    return names.sort();
  }

  /** All of it or nothing; resolves when it is on the disk. */
  async #write(work) {
    const database = await this.#database();
    const transaction = database.transaction([WAITING, REFUSED], 'readwrite', {
      durability: 'strict',
    });
    const written = new Promise((resolve, reject) => {
      transaction.oncomplete = resolve;
      transaction.onabort = () => reject(transaction.error);
    });
    const worked = work([transaction.objectStore(WAITING), transaction.objectStore(REFUSED)]);
    const [value] = await Promise.all([worked, written]);
    return value;
  }

  #database() {
    this.#opened ??= open(this.#name).then(
      (database) => {
        // Somebody removes it, or a later version of this client wants another shape.
        database.onversionchange = () => {
          database.close();
          this.#opened = null;
        };
        database.onclose = () => (this.#opened = null);
        return database;
      },
      (error) => {
        this.#opened = null;
        throw error;
      }
    );
    return this.#opened;
  }
}
