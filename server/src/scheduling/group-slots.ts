import type { Lease } from './types';

interface Group<L> {
  running: number;
  /** How many may run now: halved by a failure, raised by a success, never over the cap. */
  limit: number;
  /** In the order they were due. */
  waiting: L[];
}

const byDue = (a: Lease, b: Lease): number => a.dueAt - b.dueAt || a.id - b.id;

/**
 * Who may run. A cap for the node, a cap for each group, and a smaller one for a group that fails:
 * a dead receiver holds a slot for the whole deadline, and a handful of them must not hold them all.
 */
export class GroupSlots<L extends Lease> {
  private readonly groups = new Map<number, Group<L>>();

  /** Groups with a row that waits and a free slot, in turn. */
  private readonly ready = new Set<number>();

  private running = 0;

  private waiting = 0;

  constructor(
    private readonly nodeCap: number,
    private readonly groupCap: number
  ) {}

  /** Rows running or waiting for a slot. */
  get busy(): number {
    return this.running + this.waiting;
  }

  /** Whether a slot of the node is free that no claimed row can take. */
  get hungry(): boolean {
    return this.running < this.nodeCap && this.ready.size === 0;
  }

  /**
   * Whether every slot of the node is taken, and so many groups have rows that wait for one: what else
   * is due would have to wait for its turn, too.
   */
  get saturated(): boolean {
    return this.running >= this.nodeCap && this.ready.size >= this.nodeCap / 4;
  }

  private of(id: number): Group<L> {
    let group = this.groups.get(id);
    if (!group) {
      group = { running: 0, limit: this.groupCap, waiting: [] };
      this.groups.set(id, group);
    }
    return group;
  }

  private offer(id: number, group: Group<L>): void {
    if (group.waiting.length > 0 && group.running < group.limit) this.ready.add(id);
  }

  /** Whether so few rows of the group are left that the next ones should be claimed now. */
  wantsMore(id: number): boolean {
    const group = this.of(id);
    return group.waiting.length === 0 || group.waiting.length < group.limit / 2;
  }

  /**
   * How many rows of a group to claim: its free slots and as many again, so that a slot that
   * empties finds the next row waiting instead of waiting for a claim. None while enough wait.
   * @param planned rows that are about to be claimed of other groups
   */
  roomFor(id: number, planned = 0): number {
    if (!this.wantsMore(id)) return 0;
    const group = this.of(id);
    // A group that fails gets no rows in advance: each would sit through its lease. Nor does any
    // where many wait already: thousands of groups would fill the memory with rows.
    const mayWait = group.limit === this.groupCap && this.waiting + planned < 4 * this.nodeCap;
    const left = Math.max(0, this.nodeCap - this.running - planned);
    const free = Math.min(group.limit - group.running, left);
    const ahead = mayWait ? this.groupCap : 0;
    return Math.max(0, Math.min(free + ahead, this.nodeCap) - group.waiting.length);
  }

  /** How many more rows the group has slots for, apart from the cap of the node. */
  freeFor(id: number): number {
    const group = this.of(id);
    return Math.max(0, group.limit - group.running - group.waiting.length);
  }

  add(claimed: readonly L[]): void {
    for (const one of claimed) {
      const group = this.of(one.group);
      const last = group.waiting.at(-1);
      group.waiting.push(one);
      // A retry that has become due meanwhile may have been due before what waits.
      if (last && byDue(last, one) > 0) group.waiting.sort(byDue);
      this.waiting += 1;
      this.offer(one.group, group);
    }
  }

  /** The next row to start, which holds a slot until `finish`; none where no slot is free. */
  takeNext(): L | undefined {
    if (this.running >= this.nodeCap) return undefined;
    for (const id of this.ready) {
      // To the end of the line: groups take turns, also where slots empty one by one.
      this.ready.delete(id);
      const group = this.of(id);
      const next = group.running < group.limit ? group.waiting.shift() : undefined;
      if (!next) continue;
      group.running += 1;
      this.running += 1;
      this.waiting -= 1;
      this.offer(id, group);
      return next;
    }
    return undefined;
  }

  /** @param healthy what the row said about its group; null: nothing, it was not worked on. */
  finish(id: number, healthy: boolean | null): void {
    const group = this.of(id);
    group.running -= 1;
    this.running -= 1;
    if (healthy !== null) {
      group.limit = healthy
        ? Math.min(this.groupCap, group.limit * 2)
        : Math.max(1, Math.floor(group.limit / 2));
    }
    this.offer(id, group);
  }

  /** Gives up the rows that wait for a slot and returns them. */
  dropWaiting(): L[] {
    this.ready.clear();
    this.waiting = 0;
    return [...this.groups.values()].flatMap((group) => group.waiting.splice(0));
  }

  /** Forgets groups that are idle and have nothing due, so that the map stays as small as the site. */
  forgetExcept(due: ReadonlyMap<number, number>): void {
    for (const [id, group] of this.groups) {
      if (group.running === 0 && group.waiting.length === 0 && !due.has(id)) this.groups.delete(id);
    }
  }
}
