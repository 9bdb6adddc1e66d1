import { createFaultLog } from '../../database/retry';
import { Signal, stopWithin, TimeSlice, whenIdle } from '../../runtime/event-loop';
import { LOOK_AGAIN_MS, Recorder, STOP_MARGIN_MS } from '../../scheduling/recorder';
import type { GroupHandler, Turn, WorkerOptions } from '../../scheduling/types';
import type { Lease } from '../../queue/queue';

export interface BatchWorkerOptions<L extends Lease> extends WorkerOptions<L> {
  claimAtOnce: number;
  /** How long batches are kept while the database is away, in milliseconds. */
  keepMs: number;
  /** Works on claimed rows, in one transaction if possible; called again with them after database faults. */
  consume(leases: readonly L[]): Promise<void>;
}

/** Groups that may have a turn at once: their rows share batches, so more of them wait for each other. */
const TURNS_AT_ONCE = 8;
/** How long a turn waits for the batches before it lets others have one, in milliseconds. */
const BATCH_WAIT_MS = 500;

/** Works on claimed rows batch by batch, for work whose cost is its commit. One instance for each kind of work. */
export class BatchWorker<L extends Lease> implements GroupHandler {
  readonly pollMs: number;
  // One node a group: two that work on one till's records at once would wait for each other's locks.
  readonly turns = { groups: TURNS_AT_ONCE, nodes: 1 };
  private readonly batches: Recorder<L>;
  private readonly done = new Signal();
  private stopping = false;
  private claiming = 0;

  constructor(private readonly options: BatchWorkerOptions<L>) {
    this.pollMs = options.pollMs;
    this.batches = new Recorder<L>({
      name: options.name,
      keepMs: options.keepMs,
      logFault: createFaultLog(options.log),
      record: (leases) => this.record(leases),
      onDone: (wasFull) => {
        if (wasFull) options.announce(null);
        this.done.give();
      },
    });
  }

  now(): number {
    return this.options.store.now();
  }

  dueTimes(): Promise<ReadonlyMap<number, number>> {
    return this.options.store.dueTimes();
  }

  async work(groups: readonly number[]): Promise<void> {
    const slice = new TimeSlice();
    let isMoreDue = false;
    for (const group of groups) {
      if (this.stopping || this.batches.isFull()) break;
      if (await this.claim(group)) isMoreDue = true;
      if (slice.isOver()) await slice.next();
    }
    // Locked rows are passed over: only a look tells that nothing more is due.
    this.options.announce(null, this.now() + (isMoreDue ? 1 : LOOK_AGAIN_MS));
  }

  async takeTurn(group: number, turn: Turn): Promise<number | null> {
    const { batches, done } = this;
    while (!this.stopping && !turn.isOver()) {
      const seen = done.count();
      // Rows of other groups go first: claimed ahead, a row would only wait under its lease.
      if (!batches.isBusy() && !(await this.claim(group))) return null;
      if (batches.isBusy() && !(await done.since(seen, BATCH_WAIT_MS))) break;
    }
    return this.now();
  }

  stop(): Promise<void> {
    this.stopping = true;
    this.done.give();
    this.batches.hurry();
    const isBusy = () => this.claiming > 0 || this.batches.isBusy();
    return stopWithin(this.options.reserveMs + STOP_MARGIN_MS, whenIdle(isBusy));
  }

  private async record(leases: readonly L[]): Promise<void> {
    // A row that waited here too long is left to its lease, and comes back.
    const now = this.now();
    const isHeld = ({ leaseUntil }: L) => leaseUntil - now >= this.options.reserveMs;
    const held = leases.filter(isHeld);
    const late = leases.filter((one) => !isHeld(one));
    if (late.length > 0) this.options.onUnstarted?.(late);
    if (held.length > 0) await this.options.consume(held);
  }

  /** @returns whether more of the group may be due: it takes its turn again after the other groups. */
  private async claim(group: number): Promise<boolean> {
    const { claimAtOnce, store } = this.options;
    this.claiming += 1;
    try {
      const leases = await store.claim([{ group, limit: claimAtOnce }]);
      this.options.onClaimed?.(leases);
      for (const lease of leases) this.batches.add(lease);
      this.batches.start();
      return leases.length >= claimAtOnce;
    } finally {
      this.claiming -= 1;
    }
  }
}
