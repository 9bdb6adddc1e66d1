import { MODULE_IDS, type ModuleId } from '../../../../shared/contracts/modules';
import type { Detached } from '../../database/connection';
import { errorText } from '../../runtime/text';
import { declarations, moduleOff } from '../catalogue';
import {
  announceDeliveries,
  BY_HAND,
  getDeliveryStore,
  type LeasedDelivery,
} from '../deliveries/store';
import type { App } from '../../app';

const RELEASED_AT_ONCE = 500;

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

const written = (enabled: ReadonlySet<ModuleId>): string =>
  MODULE_IDS.filter((id) => enabled.has(id)).join();

const ALL = MODULE_IDS.join();

/** Deliveries that wait because their module is off; docs/contract-webhooks.md#events. */
export class HeldBack {
  private readonly deliveries: ReturnType<typeof getDeliveryStore>;
  private stopped = false;
  private releasing: Promise<void> | null = null;
  private again = false;
  /** Leases of one turn end together: a module may be switched off before 100,000 due deliveries. */
  private gathered: {
    lease: LeasedDelivery;
    done: () => void;
    failed: (error: unknown) => void;
  }[] = [];
  /** The switches as this node last saw them: while all were on, nothing is asked. */
  private seen: string | null = null;

  constructor(
    private readonly app: App,
    private readonly detached: Detached
  ) {
    this.deliveries = getDeliveryStore(app);
  }

  /** Whether a delivery of that event may not be sent while these modules are on. */
  async isOff(event: string, enabled: ReadonlySet<ModuleId>): Promise<boolean> {
    return (await moduleHolding(this.app, event, enabled)) !== null;
  }

  /** Puts a delivery under our lease aside until its module is on; `enabled` was said to be off. */
  hold(lease: LeasedDelivery, enabled: ReadonlySet<ModuleId>): Promise<void> {
    return new Promise((done, failed) => {
      this.seen = written(enabled);
      if (this.gathered.length === 0) setImmediate(() => void this.holdGathered());
      this.gathered.push({ lease, done, failed });
    });
  }

  /** Lets those go whose module is on, a batch a transaction; on any number of nodes at once. */
  release(): Promise<void> {
    this.again = true;
    this.releasing ??= this.detached(() => this.releaseAll());
    return this.releasing;
  }

  /** Releases no more, and resolves when a batch that is under way has ended. */
  async stop(): Promise<void> {
    this.stopped = true;
    await this.releasing;
  }

  private async releaseOf(webhook: number): Promise<number> {
    const enabled = await this.app.modules.enabled();
    const events: string[] = [];
    for (const event of await this.deliveries.eventsAside(webhook)) {
      if (!(await this.isOff(event, enabled))) events.push(event);
    }
    if (events.length === 0) return 0;
    let released = 0;
    for (;;) {
      const some = await this.deliveries.bringBack(webhook, events, RELEASED_AT_ONCE);
      released += some;
      if (some < RELEASED_AT_ONCE || this.stopped) return released;
      announceDeliveries(this.app, webhook);
    }
  }

  private async releaseAll(): Promise<void> {
    do {
      this.again = false;
      try {
        for (const webhook of this.stopped ? [] : await this.deliveries.webhooksAside()) {
          if (this.stopped) break;
          if ((await this.releaseOf(webhook)) > 0) announceDeliveries(this.app, webhook);
        }
      } catch (error) {
        // The next look of any node at the switches, or its clock, tries again.
        this.app.log.error(
          `switchboard: deliveries of a module that is on could not be released: ${errorText(error)}`
        );
      }
    } while (this.again);
    this.releasing = null;
  }

  private async holdGathered(): Promise<void> {
    const batch = this.gathered;
    this.gathered = [];
    try {
      await this.deliveries.putAside(batch.map(({ lease }) => lease));
      // Switched on before they were put aside: then nobody has looked for them since.
      const enabled = await this.app.modules.enabled();
      const events = new Set(batch.map(({ lease }) => lease.delivery.event));
      for (const event of events) if (!(await this.isOff(event, enabled))) void this.release();
      for (const { done } of batch) done();
    } catch (error) {
      for (const { failed } of batch) failed(error);
    }
  }

  /** As the store's: nothing but what is sent by hand is due while the module Webhooks is off. */
  async dueTimes(): Promise<ReadonlyMap<number, number>> {
    const due = await this.deliveries.dueTimes();
    if (this.seen === ALL) return due;
    const enabled = await this.app.modules.enabled();
    const now = written(enabled);
    // Another node may have switched something on, and may have died before it went on.
    if (this.seen !== now) void this.release();
    this.seen = now;
    return enabled.has('webhooks') ? due : new Map([...due].filter(([id]) => id === BY_HAND));
  }
}
