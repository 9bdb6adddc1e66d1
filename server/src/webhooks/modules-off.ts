import { MODULE_IDS, type ModuleId } from '../../../shared/contracts/modules';
import { BackgroundWork, createGathering } from '../runtime/event-loop';
import { logFailure } from '../runtime/text';
import { declarations, moduleOff } from './catalogue';
import { getDeliveryChanges } from './deliveries/changes';
import {
  announceDeliveries,
  BY_HAND,
  getDeliveryStore,
  type LeasedDelivery,
} from './deliveries/store';
import type { App } from '../app';

const UNPARKED_AT_ONCE = 500;

/** Which module keeps an event from being sent; the one of all events is Webhooks itself. */
export const moduleHolding = async (app: App, event: string, enabled: ReadonlySet<ModuleId>) => {
  if (enabled.size === MODULE_IDS.length) return null;
  if (!enabled.has('webhooks')) return 'webhooks';
  return moduleOff(await declarations(app), event, enabled);
};

const ALL = MODULE_IDS.join();

/** Deliveries that wait because their module is off; docs/contract-webhooks.md#events. */
export class HeldBack {
  /** Parks a leased delivery until its module is on, with others of the same turn: it may be one of 100,000. */
  readonly hold: (lease: LeasedDelivery) => Promise<void>;
  private readonly releasing: BackgroundWork;
  /** The switches as this node last saw them: while all were on, nothing is asked. */
  private seen: string | null = null;

  constructor(private readonly app: App) {
    this.hold = createGathering((leases) => this.park(leases));
    this.releasing = new BackgroundWork({
      detached: app.detached,
      pass: (isStopped) => this.releaseAll(isStopped),
      // The next look of any node at the switches, or its clock, tries again.
      failed: logFailure(app, 'deliveries of a module that is on could not be released'),
    });
  }

  /** Lets those go whose module is on, a batch a transaction; on any number of nodes at once. */
  release(): void {
    this.releasing.wake();
  }

  /** Releases no more, and resolves when a batch that is under way has ended. */
  stop(): Promise<void> {
    return this.releasing.stop();
  }

  /** As the store's: nothing but what is sent by hand is due while the module Webhooks is off. */
  async dueTimes(): Promise<ReadonlyMap<number, number>> {
    const due = await getDeliveryStore(this.app).dueTimes();
    if (this.seen === ALL) return due;
    const enabled = await this.lookAtSwitches();
    return enabled.has('webhooks') ? due : new Map([...due].filter(([id]) => id === BY_HAND));
  }

  private async lookAtSwitches(): Promise<ReadonlySet<ModuleId>> {
    const enabled = await this.app.modules.enabled();
    const now = MODULE_IDS.filter((id) => enabled.has(id)).join();
    // Another node may have switched something on, and may have died before it went on.
    if (this.seen !== now) this.release();
    this.seen = now;
    return enabled;
  }

  private async park(leases: readonly LeasedDelivery[]): Promise<void> {
    await getDeliveryChanges(this.app).park(leases);
    // Switched on before they were parked: the wake-up has missed them.
    const enabled = await this.lookAtSwitches();
    for (const event of new Set(leases.map(({ delivery }) => delivery.event)))
      if (!(await moduleHolding(this.app, event, enabled))) this.release();
  }

  private async releaseAll(isStopped: () => boolean): Promise<void> {
    const changes = getDeliveryChanges(this.app);
    for (const event of await changes.parkedEvents()) {
      if (await moduleHolding(this.app, event, await this.app.modules.enabled())) continue;
      for (let some = UNPARKED_AT_ONCE; some === UNPARKED_AT_ONCE;) {
        if (isStopped()) return;
        some = await changes.unpark(event, UNPARKED_AT_ONCE);
        if (some > 0) announceDeliveries(this.app, null);
      }
    }
  }
}
