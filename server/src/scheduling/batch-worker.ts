import { setTimeout as sleep } from 'node:timers/promises';
import { createFaultLog } from '../database/retry';
import { TimeSlice } from '../runtime/event-loop';
import { IDLE_LOOK_MS, Recorder, Signal, STOP_MARGIN_MS, stopWithin } from './recorder';
import type { GroupHandler, Turn, WorkerLog, WorkStore } from './types';
import type { Lease } from '../queue/queue';

export interface BatchWorkerOptions<L extends Lease> {
  name: string;
  store: WorkStore<L>;
  log: WorkerLog;
  /** Rows that are claimed of one group at once. */
  claimAtOnce: number;
  /** How much of a lease must be left for work to be started, in milliseconds. */
  reserveMs: number;
  pollMs: number;
  /** How long batches are kept while the database is away, in milliseconds. */
  keepMs: number;
  /** Says to the scheduler that more can be worked on now. */
  announce(): void;
  /**
   * Works on all of them together, in one transaction if it can. Called with what was claimed since
   * the last call, of whatever groups, and again with the same where the database was away.
   */
  consume(leases: readonly L[]): Promise<void>;
  /** Called with the claimed rows, before any of them starts. */
  onClaimed?(leases: readonly L[]): void;
  /** Called with the rows that waited too long to be worked on under their lease. */
  onLate?(leases: readonly L[]): void;
}

/** Groups that may have a turn at once: their rows share batches, so more of them wait for each other. */
const TURNS_AT_ONCE = 8;
/** When to look whether something of a group is due, of which fewer rows were brought than asked for. */
const LOOK_AGAIN_MS = 100;
/** How long a turn waits for the batches before it lets others have one, in milliseconds. */
const BATCH_WAIT_MS = 500;

/**
 * Works on claimed rows in batches, one batch after the other: for work whose cost is its commit. One
 * instance a kind of work.
 */
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
      logFault: createFaultLog(options.log, Date.now),
      record: (leases) => this.record(leases),
      onDone: (wasFull) => {
        if (wasFull) options.announce();
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

  async work(groups: readonly number[]): Promise<number> {
    const slice = new TimeSlice();
    let isMoreDue = false;
    for (const group of groups) {
      if (this.stopping || this.batches.isFull()) break;
      if (await this.claim(group)) isMoreDue = true;
      if (slice.isOver()) await slice.next();
    }
    // Locked rows are passed over: only a look tells that nothing more is due.
    return this.now() + (isMoreDue ? 0 : LOOK_AGAIN_MS);
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
    return stopWithin(this.options.reserveMs + STOP_MARGIN_MS, this.end());
  }

  private async end(): Promise<void> {
    while (this.claiming > 0 || this.batches.isBusy())
      await sleep(IDLE_LOOK_MS, undefined, { ref: false });
  }

  private async record(leases: readonly L[]): Promise<void> {
    // A row that waited here too long is left to its lease, and comes back.
    const now = this.now();
    const isHeld = ({ leaseUntil }: L) => leaseUntil - now >= this.options.reserveMs;
    const held = leases.filter(isHeld);
    if (held.length < leases.length) this.options.onLate?.(leases.filter((one) => !isHeld(one)));
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
