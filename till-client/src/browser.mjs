/**
 * The client for tills that are pages: signs by WebCrypto, and keeps what could not be sent in
 * IndexedDB. browser.d.mts has the shapes.
 */

import { TillClient } from './client.mjs';
import { DatabaseStore } from './database-store.mjs';
import { OfflineQueue } from './queue.mjs';
import { bytesOf } from './records.mjs';

export { TillError } from './client.mjs';

const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

/** `X-POS-Signature` of these exact bytes. */
export const sign = async ({ secret, timestamp, body }) => {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const { subtle } = globalThis.crypto;
  if (!subtle) throw new TypeError('a page signs over https or on localhost only (WebCrypto)');
  const key = await subtle.importKey('raw', bytesOf(secret), algorithm, false, ['sign']);
  const time = bytesOf(`${timestamp}\n`);
  const signed = new Uint8Array(time.length + bytesOf(body).length);
  signed.set(time);
  signed.set(bytesOf(body), time.length);
  return `sha256=${hex(new Uint8Array(await subtle.sign('HMAC', key, signed)))}`;
};

export const createTill = (options) => new TillClient(options, sign);

/** Sends at once when the browser is back on the network. */
class PageQueue extends OfflineQueue {
  #online = () => void this.flush().catch(() => {});

  run() {
    globalThis.addEventListener('online', this.#online);
    return super.run();
  }

  stop() {
    globalThis.removeEventListener('online', this.#online);
    return super.stop();
  }
}

/** Without it a browser that is short of space may remove what waits. It may say no. */
const askToPersist = () => {
  navigator.storage?.persist?.().catch(() => {});
};

/** A till that records first and sends when it can; its windows take turns. */
export const createOfflineTill = ({ folder, onSettled, ...options }) => {
  askToPersist();
  return new PageQueue({
    till: createTill({ tries: 1, ...options }),
    store: new DatabaseStore(folder),
    alone: (work) =>
      navigator.locks ? navigator.locks.request(`switchboard-till:${folder}`, work) : work(),
    warn: (message) => console.warn(message),
    onSettled,
    random: options.random,
    now: options.now,
  });
};
