/**
 * A client for tills, without dependencies: signs, sends, tries again, and keeps what could not be
 * sent on disk, in order. docs/tills.md describes the wire; index.d.ts the shapes.
 */

import { createHmac } from 'node:crypto';
import { TillClient } from './client.mjs';
import { FileStore } from './file-store.mjs';
import { OfflineQueue } from './queue.mjs';

export { TillError } from './client.mjs';

/** `X-POS-Signature` of these exact bytes. */
export const sign = ({ secret, timestamp, body }) => {
  const hmac = createHmac('sha256', secret).update(`${timestamp}\n`, 'utf8').update(body);
  return `sha256=${hmac.digest('hex')}`;
};

export const createTill = (options) => new TillClient(options, sign);

/** A till that records first and sends when it can. */
export const createOfflineTill = ({ folder, onSettled, ...options }) =>
  new OfflineQueue({
    till: createTill({ tries: 1, ...options }),
    store: new FileStore(folder),
    warn: (message) => process.emitWarning(message, 'TillWarning'),
    onSettled,
    random: options.random,
    now: options.now,
  });
