import type { Claimed } from './types';

interface Group {
  running: number;
  /** How many may run now: halved by a failure, raised by a success, never over the cap. */
  limit: number;
  waiting: Claimed[];
}

/**
 * Who may run. A cap for the node, a cap for each group, and a smaller one for a group that fails:
 * a dead receiver holds a slot for the whole deadline, and a handful of them must not hold them all.
 */
export class GroupSlots {
  private readonly groups = new Map<number, Group>();

  private running = 0;

  constructor(
    private readonly nodeCap: number,
    private readonly groupCap: number
  ) {}

  /** Rows running or waiting for a slot. */
  get busy(): number {
    let waiting = 0;
    for (const group of this.groups.values()) waiting += group.waiting.length;
    return this.running + waiting;
  }

  private of(id: number): Group {
    let group = this.groups.get(id);
    if (!group) {
      group = { running: 0, limit: this.groupCap, waiting: [] };
      this.groups.set(id, group);
    }
    return group;
  }

  /** Whether so few rows of the group are left that the next ones should be claimed now. */
  wantsMore(id: number): boolean {
    const group = this.of(id);
    return group.waiting.length === 0 || group.waiting.length < group.limit / 2;
  }

  /**
   * How many rows of a group to claim: its free slots and as many again, so that a slot that
   * empties finds the next row waiting instead of waiting for a claim. None while enough wait.
   */
  roomFor(id: number): number {
    if (!this.wantsMore(id)) return 0;
    const group = this.of(id);
    // A group that fails gets no rows in advance: each would sit through its lease.
    const ahead = group.limit === this.groupCap ? this.groupCap : 0;
    const free = Math.min(group.limit - group.running, this.nodeCap - this.running);
    return Math.max(0, Math.min(free + ahead, this.nodeCap) - group.waiting.length);
  }

  add(claimed: readonly Claimed[]): void {
    for (const one of claimed) this.of(one.group).waiting.push(one);
  }

  /** The next row to start, which holds a slot until `finish`; none where no slot is free. */
  takeNext(): Claimed | undefined {
    if (this.running >= this.nodeCap) return undefined;
    for (const [id, group] of this.groups) {
      if (group.running >= group.limit) continue;
      const next = group.waiting.shift();
      if (!next) continue;
      group.running += 1;
      this.running += 1;
      // To the end of the line: groups take turns, also where slots empty one by one.
      this.groups.delete(id);
      this.groups.set(id, group);
      return next;
    }
    return undefined;
  }

  /** @param healthy what the row said about its group; null: nothing, it was not worked on. */
  finish(id: number, healthy: boolean | null): void {
    const group = this.of(id);
    group.running -= 1;
    this.running -= 1;
    if (healthy === null) return;
    group.limit = healthy
      ? Math.min(this.groupCap, group.limit * 2)
      : Math.max(1, Math.floor(group.limit / 2));
  }

  /** Gives up the rows that wait for a slot and returns them. */
  dropWaiting(): Claimed[] {
    return [...this.groups.values()].flatMap((group) => group.waiting.splice(0));
  }

  /** Forgets groups that are idle and have nothing due, so that the map stays as small as the site. */
  forgetExcept(due: ReadonlyMap<number, number>): void {
    for (const [id, group] of this.groups) {
      if (group.running === 0 && group.waiting.length === 0 && !due.has(id)) this.groups.delete(id);
    }
  }
}
