import { AsyncLocalStorage } from 'node:async_hooks';
import type { ChangeSource } from '../../../shared/contracts/crm';
import {
  currentSubscriptions,
  type PrefetchedSubscriptions,
  prefetchSubscriptions,
  type Subscriptions,
} from '../webhooks/subscriptions';
import type { Entry } from './mapping/mapping';
import type { WatchedSource } from './mapping/watched-types';
import type { Before } from './rules';
import type { App } from '../app';

const explicit = new AsyncLocalStorage<ChangeSource>();

/** Runs `work` as done by a form, an import …, whatever request it happens to run in. */
export const withOrigin = <T>(origin: ChangeSource, work: () => T): T => explicit.run(origin, work);

/** Who or what makes the current change: the `source` of `contact.tagged` and `contact.untagged`. */
const currentOrigin = (app: App): ChangeSource => {
  const given = explicit.getStore();
  if (given) return given;
  const route: unknown = app.strapi.requestContext.get()?.state?.route;
  const type = (route as { info?: { type?: string } } | undefined)?.info?.type;
  if (type === 'admin') return 'admin';
  return type === 'content-api' ? 'api' : 'code';
};

/** One record within a unit of work, as it was before the first write to it. */
export interface TrackedChange {
  /** null: there was none. */
  before: Before | null;
  /** Whether its tags may have changed, so that they are read again afterwards. */
  tags: boolean;
  /** The row as the write left it, where it need not be read again. */
  row: Entry | null;
  /** Its state before could not be told (a computed field failed): no event is made up. */
  unknown: boolean;
}

const contexts = new AsyncLocalStorage<WriteContext>();

/**
 * One write, from where it is wrapped to where its events are handed over: who makes it, who
 * subscribed, and what it changes.
 *
 * While it is tracked it is a unit of work, such as a call of the document service: however many rows
 * are written (a draft, a published row, a locale, a nested write of a lifecycle), each record is
 * compared once, before against after, and has its events once.
 */
export class WriteContext {
  /** Whether changes are tracked here now: from the beginning of its work to the comparison. */
  isTracking = false;
  readonly changes = new Map<WatchedSource, Map<string, TrackedChange>>();
  readonly origin: ChangeSource;

  constructor(
    readonly app: App,
    /** Rows may still change after their own write: a document service call does several. */
    readonly compound: boolean,
    readonly prefetched: PrefetchedSubscriptions | null
  ) {
    this.origin = currentOrigin(app);
  }

  /** Who subscribed to these events, as of now: a webhook that this very write has made is among them. */
  subscriptions(events: readonly string[]): Promise<Subscriptions> {
    return currentSubscriptions(this.app, events, this.prefetched);
  }

  /** What is tracked of one type, by document id. */
  changesOf(watched: WatchedSource): Map<string, TrackedChange> {
    const changes = this.changes.get(watched) ?? new Map<string, TrackedChange>();
    this.changes.set(watched, changes);
    return changes;
  }
}

/** The write that is being tracked here, if there is one. */
export const trackedWrite = (): WriteContext | undefined => {
  const context = contexts.getStore();
  return context?.isTracking ? context : undefined;
};

/**
 * Runs `work` as a write: as part of the one that is being tracked, or else as one of its own, whose
 * subscriptions are prefetched while `work` begins.
 * @param events that the write may cause
 */
export const inWriteContext = <T>(
  app: App,
  { compound, events }: { compound: boolean; events: readonly string[] },
  work: (context: WriteContext) => T
): T => {
  const outer = trackedWrite();
  if (outer) return work(outer);
  // Within a transaction nothing is prefetched, but what was prefetched just before it is used.
  const prefetched = app.db.inTransaction()
    ? (contexts.getStore()?.prefetched ?? null)
    : prefetchSubscriptions(app, events);
  const context = new WriteContext(app, compound, prefetched);
  return contexts.run(context, () => work(context));
};
