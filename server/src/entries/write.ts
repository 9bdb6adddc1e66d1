import { AsyncLocalStorage } from 'node:async_hooks';
import type { Core } from '@strapi/strapi';
import {
  currentSubscriptions,
  type PrefetchedSubscriptions,
  prefetchSubscriptions,
  type Subscriptions,
} from '../webhooks/subscriptions';
import type { Version } from './rules/shape';
import type { EntryType } from './types';

/** A document within a unit of work, as it was before the first write to it. */
export interface TrackedDocument {
  before: readonly Version[];
  /** Its content was written anew, whether it differs or not. */
  rewritten: boolean;
}

const writes = new AsyncLocalStorage<EntryWrite>();

/**
 * One write of the site's: a call of the document service, or of the query engine outside of one. What it
 * changes is tracked, and compared at its end: however many rows it writes, each version of a document
 * has its event once.
 */
export class EntryWrite {
  /** Whether changes are tracked here now: from the beginning of its work to the comparison. */
  isTracking = false;
  readonly documents = new Map<EntryType, Map<string, TrackedDocument>>();
  /** Rows of tracked documents: a write that names one of them needs no look. */
  readonly rows = new Set<string>();

  constructor(
    readonly strapi: Core.Strapi,
    readonly prefetched: PrefetchedSubscriptions | null
  ) {}

  subscriptions({ events }: EntryType): Promise<Subscriptions> {
    return currentSubscriptions(this.strapi, events, this.prefetched);
  }

  async isSubscribed(type: EntryType): Promise<boolean> {
    const subscriptions = await this.subscriptions(type);
    return type.events.some((event) => subscriptions.isSubscribed(event));
  }

  /** What is tracked of a type, by document id. */
  documentsOf(type: EntryType): Map<string, TrackedDocument> {
    const documents = this.documents.get(type) ?? new Map<string, TrackedDocument>();
    this.documents.set(type, documents);
    return documents;
  }
}

/** The write that is being tracked here, if there is one. */
export const trackedWrite = (): EntryWrite | undefined => {
  const write = writes.getStore();
  return write?.isTracking ? write : undefined;
};

/** Runs `work` as a write of its own; who subscribed is asked for beside what the host does first. */
export const inWrite = <T>(
  strapi: Core.Strapi,
  { events }: EntryType,
  work: (write: EntryWrite) => T
): T => {
  const prefetched = strapi.db.inTransaction()
    ? (writes.getStore()?.prefetched ?? null)
    : prefetchSubscriptions(strapi, events);
  const write = new EntryWrite(strapi, prefetched);
  return writes.run(write, () => work(write));
};
