import type { ChangeSource } from '../../../../shared/contracts/crm';
import type { Payload, TagRef } from './payload';

export interface CrmEvent {
  event: string;
  data: unknown;
}

/** A record as it was before a write. `keys`: what was read of it; the write cannot touch the rest. */
export interface Before {
  payload: Readonly<Record<string, unknown>>;
  keys: readonly string[];
  tags: readonly TagRef[] | null;
}

export interface After {
  payload: Payload;
  tags: readonly TagRef[] | null;
}

/** One record before and after one business change; null: it does not exist (for receivers). */
export interface Change {
  before: Before | null;
  after: After | null;
  origin: ChangeSource;
  bookkeeping: ReadonlySet<string>;
}

export type WriteAction = 'create' | 'update' | 'delete';

/** What a write is about to change. */
export interface WriteImpact {
  action: WriteAction;
  /** Payload keys whose value may change; null: any. */
  keys: ReadonlySet<string> | null;
  /** Whether tags may come or go. */
  tags: boolean;
}

/** Which events a kind of record sends, and when. */
export interface KindRules {
  /** The events that such a write may cause: nobody asked for any -> nothing is read. */
  possible(impact: WriteImpact): string[];
  /** The events that a change did cause, in the order in which they are sent. */
  derive(change: Change): CrmEvent[];
}
