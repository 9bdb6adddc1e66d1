import { MODULE_IDS, type ModuleId } from '../../../../shared/contracts/modules';
import type { Detached } from '../../database/connection';
import { errorText } from '../../runtime/text';
import type { CappedWorkStore } from '../../scheduling/types';
import { declarations, moduleOff } from '../catalogue';
import { announceDeliveries, getDeliveryStore, type LeasedDelivery } from '../deliveries/store';
import type { App } from '../../app';

const RELEASED_AT_ONCE = 500;

/** Deliveries that wait because their module is off; docs/contract-webhooks.md#events. */
export interface HeldBack {
  /** Whether a delivery of that event may not be sent while these modules are on. */
  isOff(event: string, enabled: ReadonlySet<ModuleId>): Promise<boolean>;
  /** Puts a delivery under our lease aside until its module is on; `enabled` was said to be off. */
  hold(lease: LeasedDelivery, enabled: ReadonlySet<ModuleId>): Promise<void>;
  /** Lets those go whose module is on, a batch a transaction; on any number of nodes at once. */
  release(): Promise<void>;
  /** Releases no more, and resolves when a batch that is under way has ended. */
  stop(): Promise<void>;
  /** The store as the delivery handler sees it: nothing is due while the module Webhooks is off. */
  store: CappedWorkStore<LeasedDelivery>;
}

/** Which module keeps an event from being sent; the one of all events is Webhooks itself. */
export const moduleHolding = async (
  app: App,
  event: string,
  enabled: ReadonlySet<ModuleId>
): Promise<ModuleId | null> => {
  if (enabled.size === MODULE_IDS.length) return null;
  if (!enabled.has('webhooks')) return 'webhooks';
  return moduleOff(await declarations(app), event, enabled);
};

export const createHeldBack = (app: App, detached: Detached): HeldBack => {
  const store = getDeliveryStore(app);

  const isOff: HeldBack['isOff'] = async (event, enabled) =>
    (await moduleHolding(app, event, enabled)) !== null;

  const releaseOf = async (webhook: number): Promise<number> => {
    const enabled = await app.modules.enabled();
    const events: string[] = [];
    for (const event of await store.eventsAside(webhook)) {
      if (!(await isOff(event, enabled))) events.push(event);
    }
    let released = 0;
    for (;;) {
      const some = events.length > 0 ? await store.bringBack(webhook, events, RELEASED_AT_ONCE) : 0;
      released += some;
      if (some < RELEASED_AT_ONCE || stopped) return released;
      announceDeliveries(app, webhook);
    }
  };

  let stopped = false;
  let releasing: Promise<void> | null = null;
  let again = false;
  const releaseAll = async (): Promise<void> => {
    do {
      again = false;
      try {
        for (const webhook of stopped ? [] : await store.webhooksAside()) {
          if (stopped) break;
          if ((await releaseOf(webhook)) > 0) announceDeliveries(app, webhook);
        }
      } catch (error) {
        // The next look of any node at the switches, or its clock, tries again.
        app.log.error(
          `switchboard: deliveries of a module that is on could not be released: ${errorText(error)}`
        );
      }
    } while (again);
    releasing = null;
  };
  const release = (): Promise<void> => {
    again = true;
    releasing ??= detached(releaseAll);
    return releasing;
  };

  /** Leases of one turn end together: a module may be switched off before 100,000 due deliveries. */
  let gathered: { lease: LeasedDelivery; done: () => void; failed: (error: unknown) => void }[] =
    [];
  const holdGathered = async (): Promise<void> => {
    const batch = gathered;
    gathered = [];
    try {
      await store.putAside(batch.map(({ lease }) => lease));
      // Switched on before they were put aside: then nobody has looked for them since.
      const enabled = await app.modules.enabled();
      const events = new Set(batch.map(({ lease }) => lease.delivery.event));
      for (const event of events) if (!(await isOff(event, enabled))) void release();
      for (const { done } of batch) done();
    } catch (error) {
      for (const { failed } of batch) failed(error);
    }
  };

  /** The switches as this node last saw them: while all were on, nothing is asked. */
  let seen: string | null = null;
  const ALL = MODULE_IDS.join();
  const written = (enabled: ReadonlySet<ModuleId>): string =>
    MODULE_IDS.filter((id) => enabled.has(id)).join();

  return {
    isOff,
    release,
    async stop() {
      stopped = true;
      await releasing;
    },
    hold: (lease, enabled) =>
      new Promise((done, failed) => {
        seen = written(enabled);
        if (gathered.length === 0) setImmediate(() => void holdGathered());
        gathered.push({ lease, done, failed });
      }),
    store: {
      ...store,
      async dueTimes() {
        if (seen === ALL) return store.dueTimes();
        const enabled = await app.modules.enabled();
        const now = written(enabled);
        // Another node may have switched something on, and may have died before it went on.
        if (seen !== now) void release();
        seen = now;
        return enabled.has('webhooks') ? store.dueTimes() : new Map();
      },
    },
  };
};
