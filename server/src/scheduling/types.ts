import type { GroupRoom, Lease } from '../queue/queue';
import type { CappedClaim, LeaseCap } from '../queue/limited-queue';

/** Decides which group is served where and when: it knows kinds, groups and times, and stores know rows. */
export interface Scheduler {
  /**
   * Announces that work of a kind may be due from a time on (epoch milliseconds of the handler's clock), of one group
   * or any (`null`). For after a commit: cheap, never throws, never waits. Losing it only costs time: engines also read
   * due times.
   */
  announce(kind: string, group: number | null, at: number): void;
  /** Serves a kind of work from now on, on this node. */
  serve(kind: string, handler: GroupHandler): void;
  /** Names of paused queues among those of these kinds; a site without queues has none. */
  pausedQueues(kinds: readonly string[]): Promise<string[]>;
  /** Takes no more work of a kind, or of any, and resolves when its handler has ended what it had begun. */
  stop(kind?: string): Promise<void>;
  /** Gives back what the engine itself holds open. For the end, after the last announcement. */
  close(): Promise<void>;
}

export interface GroupHandler {
  /** Ask for due times at least this often while work waits, in milliseconds. */
  readonly pollMs: number;
  /** Now, by the clock of due times; epoch milliseconds. */
  now(): number;
  /** When each group's next work is due; groups with nothing to do are absent. */
  dueTimes(): Promise<ReadonlyMap<number, number>>;
  /** Works on due groups, longest waiting first, or on those named; announces when to look at them again. */
  work(groups: readonly number[]): Promise<void>;
  /** How many groups may have a turn at once on this node, and how many nodes one group. */
  readonly turns: { groups: number; nodes: number };
  /**
   * Works on a group for a while, if an engine shares groups with other nodes: until nothing is due or fits, or the
   * turn is over. Started work may go on afterwards; a slot worker leaves turns to the engine.
   * @returns when the group should have a turn again; null: nothing of it is due now.
   */
  takeTurn?(group: number, turn: Turn): Promise<number | null>;
  /** Ends what it had begun. */
  stop(): Promise<void>;
}

/** A turn of one group on this node, for engines that share groups with other nodes. */
export interface Turn {
  /** True if it has lasted long enough: other groups wait. */
  isOver(): boolean;
  /** Says that more of the group is due than this node takes now: another node may help. */
  share(): void;
}

/** A group's own limits, in addition to the worker's caps. */
export interface GroupLimits {
  /** How many of it may be under way at once; without it, the limit of any group. */
  cap?: number | null;
  /** false: rows are claimed for slots that are free, and none in advance. */
  ahead?: boolean;
  /** true: its claims may be slow, so they run separately and delay no other group. */
  separate?: boolean;
}

/** A store as the worker needs it; times are of the store's clock. */
export interface WorkStore<L extends Lease> {
  now(): number;
  dueTimes(): Promise<ReadonlyMap<number, number>>;
  /** Leases due rows, up to a number per group, longest due first. */
  claim(rooms: readonly GroupRoom[]): Promise<L[]>;
  /** Releases the leases of unprocessed rows, which keep their due times. */
  release(leases: readonly L[]): Promise<void>;
}

/** A store of many groups, which have a cap that holds for all nodes. */
export interface CappedWorkStore<L extends Lease> extends WorkStore<L> {
  /** Prolongs leases, each only while it still holds. */
  renew(leases: readonly L[]): Promise<void>;
  /** As `claim`, of one group, but no more than the cap leaves. */
  claimWithin(group: number, limit: number, cap: LeaseCap): Promise<CappedClaim<L>>;
}

export interface WorkerLog {
  error(message: string): void;
}

export interface WorkerOptions<L extends Lease> {
  name: string;
  store: WorkStore<L>;
  log: WorkerLog;
  /** How much of the claim's lease must be left for work to be started, in milliseconds. */
  reserveMs: number;
  pollMs: number;
  /** Announces work of a group, or of any (`null`), now or from a time (epoch milliseconds, store's clock). */
  announce(group: number | null, at?: number): void;
  /** Called with the claimed rows, before any of them starts. */
  onClaimed?(leases: readonly L[]): void;
  /** Called with rows that were not started: too little was left of their lease, or of the worker's time. */
  onUnstarted?(leases: readonly L[]): void;
}
