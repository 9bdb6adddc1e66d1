/** A client for tills, without dependencies; docs/tills.md describes the wire. */

import type { OfflineTill, SettlementOf, Till, TillOptions } from './types.js';

export * from './types.js';

export type Settlement = SettlementOf<Buffer>;

export interface OfflineTillOptions extends Omit<TillOptions, 'tries'> {
  /** Where records wait; one till's alone. What is refused goes into `refused` there. */
  folder: string;
  onSettled?: (settlement: Settlement) => void;
}

/** `X-POS-Signature` of these exact bytes. */
export declare function sign(request: {
  secret: string;
  timestamp: string | number;
  body: string | Buffer;
}): string;

export declare function createTill(options: TillOptions): Till;

export declare function createOfflineTill(options: OfflineTillOptions): OfflineTill;
