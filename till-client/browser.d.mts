/** The client for tills that are pages: WebCrypto signs, IndexedDB keeps. */

import type { OfflineTill, SettlementOf, Till, TillOptions } from './types.js';

export * from './types.js';

export type Settlement = SettlementOf<Uint8Array>;

export interface OfflineTillOptions extends Omit<TillOptions, 'tries'> {
  /** Names the IndexedDB database of the page's origin in which records wait. */
  folder: string;
  onSettled?: (settlement: Settlement) => void;
}

/** `X-POS-Signature` of these exact bytes. */
export declare function sign(request: {
  secret: string;
  timestamp: string | number;
  body: string | Uint8Array;
}): Promise<string>;

export declare function createTill(options: TillOptions): Till;

export declare function createOfflineTill(options: OfflineTillOptions): OfflineTill;
