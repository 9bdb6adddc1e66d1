import type { ChangeSource } from '../../../../shared/contracts/crm';

/** A CRM object as REST and events carry it. */
export type Payload = { id: string } & Record<string, unknown>;

/** A tag inside `contact.tagged` and `contact.untagged`. */
export interface TagRef {
  id: string;
  slug: unknown;
  name: unknown;
}

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

/** The kinds of objects that the CRM knows. */
export const KINDS = [
  'contact',
  'tag',
  'company',
  'deal',
  'deal-stage',
  'task',
  'campaign',
] as const;
export type Kind = (typeof KINDS)[number];
