import { AsyncLocalStorage } from 'node:async_hooks';
import type { Tx } from '../database/db';
import { inChunks } from '../database/written-rows';
import { type Subscriptions, subscribersOf } from './subscriptions';
import type { App } from '../app';

/** Sites whose writes are to send no events, for a migration that should stay silent. */
export const silenced = new WeakSet<App>();

/** Goes on with a value, at once if it is there: a promise of a known value costs as much as a step of a write. */
export const goOn = <T, Next>(
  value: T | Promise<T>,
  next: (value: T) => Next | Promise<Next>
): Next | Promise<Next> => (value instanceof Promise ? value.then(next) : next(value));

export type Changes<Change> = readonly (readonly [id: string, change: Change])[];

/**
 * One write of the site, from its wrapping until its events are handed over. While tracked it is a unit of work:
 * however many rows are written (draft, published, locales, nested lifecycle writes), each record is compared once,
 * before against after, and has its events once, in the transaction of the write.
 */
export abstract class UnitOfWork<Type, Change> {
  /** True while changes are tracked here: from the beginning of its work to the comparison. */
  isTracking = false;
  /** All that it may cause, which are looked up at once. */
  events: readonly string[] = [];
  protected readonly changes = new Map<Type, Map<string, Change>>();
  /** Writes within it that are under way; the work that began one may not wait for it. */
  private readonly inner = new Set<Promise<unknown>>();

  constructor(readonly app: App) {}

  /** The current subscribers of these events: a webhook that this very write has made is among them. */
  subscriptions(events: readonly string[]): Subscriptions | Promise<Subscriptions> {
    const subscribers = subscribersOf(this.app);
    const isAmongAll = events.every((event) => this.events.includes(event));
    const all = isAmongAll ? this.events : events;
    return subscribers.known(all) ?? subscribers.current(all);
  }

  isAnySubscribed(events: readonly string[], of: readonly string[] = events) {
    return goOn(this.subscriptions(of), (found) => found.isAnySubscribed(events));
  }

  changesOf(type: Type): Map<string, Change> {
    const changes = this.changes.get(type) ?? new Map<string, Change>();
    this.changes.set(type, changes);
    return changes;
  }

  /** Compares some of the records with what they are now, and publishes what happened to them. */
  protected abstract publishSome(type: Type, changes: Changes<Change>, tx: Tx): Promise<void>;

  /** Runs a write within this one: its changes are tracked here, to its end. To be called while `isTracking`. */
  async include<T>(work: () => Promise<T>): Promise<T> {
    const running = work();
    this.inner.add(running);
    try {
      return await running;
    } finally {
      this.inner.delete(running);
    }
  }

  /** Runs a write, then publishes its changes. A write by publishing (the sender of a form) is one of its own. */
  run<T>(work: () => Promise<T>): Promise<T> {
    const tracked = async (): Promise<T> => {
      this.isTracking = true;
      try {
        return await work();
      } finally {
        while (this.inner.size > 0) await Promise.allSettled(this.inner);
        this.isTracking = false;
      }
    };
    return this.app.db.unitOfWork(tracked, async (tx) => {
      for (const [type, changes] of this.changes) {
        for (const some of inChunks([...changes])) await this.publishSome(type, some, tx);
      }
    });
  }
}

/** Writes of one kind of source, by asynchronous context. */
export class UnitsOfWork<
  Unit extends Pick<UnitOfWork<unknown, unknown>, 'app' | 'isTracking' | 'events'>,
> {
  private readonly storage = new AsyncLocalStorage<Unit>();

  get tracked(): Unit | undefined {
    const unit = this.storage.getStore();
    return unit?.isTracking ? unit : undefined;
  }

  /** Runs `work` as a write of its own. @param events that it may cause */
  enter<T>(unit: Unit, events: readonly string[], work: (unit: Unit) => T): T {
    if (!unit.app.db.inTransaction()) subscribersOf(unit.app).prefetch(events);
    unit.events = events;
    return this.storage.run(unit, () => work(unit));
  }
}
