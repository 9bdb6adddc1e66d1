import type { GroupRoom, Lease } from '../queue/queue';
import type { CappedClaim, LeaseCap } from '../queue/limited-queue';

/**
 * Which group of waiting work is served where and when. The scheduler knows kinds, groups and times
 * and nothing of how work is stored; the stores know rows and nothing of when they are looked at.
 */
export interface Scheduler {
  /**
   * Says that work of a kind may be waiting from that time on (epoch milliseconds of the handler's
   * clock); of one group, or of any (`null`). For the moment after a commit: cheap, never throws,
   * never waits. A lost announcement only costs time: every engine also asks the handler for due times.
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
  /** Now, by the clock that due times go by: epoch milliseconds. */
  now(): number;
  /** When each group's next work is due; groups with nothing to do are absent. */
  dueTimes(): Promise<ReadonlyMap<number, number>>;
  /**
   * Works on groups whose work is due, the one first that has waited longest, or that were announced
   * by name. Announces by itself when to look at them again, apart from due times.
   */
  work(groups: readonly number[]): Promise<void>;
  /** How many groups may have a turn at once on this node, and how many nodes one group. */
  readonly turns: { groups: number; nodes: number };
  /**
   * Works on a group for a while, if an engine shares groups with other nodes, and at the same time as
   * other groups: until nothing of it is due, nothing more fits, or the turn is over. Work that it began
   * may go on after that. A slot worker leaves its turns to the engine.
   * @returns when the group should have a turn again; null: nothing of it is due now.
   */
  takeTurn?(group: number, turn: Turn): Promise<number | null>;
  /** Ends what it had begun. */
  stop(): Promise<void>;
}

/** A turn of one group on this node, where an engine shares groups with other nodes. */
export interface Turn {
  /** True if it has lasted long enough: other groups wait. */
  isOver(): boolean;
  /** Says that more of the group is due than this node takes now: another node may help. */
  share(): void;
}

/** A group's own limits, in addition to the worker's caps. */
export interface GroupLimits {
  /** How many of it may be under way at once; as of any group where it has none. */
  cap?: number | null;
  /** false: rows are claimed for slots that are free, and none in advance. */
  ahead?: boolean;
  /** true: a claim of it may take a while, so it is made by itself and keeps no other group waiting. */
  separate?: boolean;
}

/** A store as the worker needs it; times are of the store's clock. */
export interface WorkStore<L extends Lease> {
  now(): number;
  dueTimes(): Promise<ReadonlyMap<number, number>>;
  /** Leases due rows, so many of each group, those that have been due longest and in that order. */
  claim(rooms: readonly GroupRoom[]): Promise<L[]>;
  /** Gives leased rows back unworked: due as they were before, held by nobody. */
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
  /**
   * Says to the scheduler that more of a group, or of any (`null`), can be worked on now, or from a
   * time on, epoch milliseconds of the store's clock.
   */
  announce(group: number | null, at?: number): void;
  /** Called with the claimed rows, before any of them starts. */
  onClaimed?(leases: readonly L[]): void;
  /** Called with rows that were not started: too little was left of their lease, or of the worker's time. */
  onUnstarted?(leases: readonly L[]): void;
}
