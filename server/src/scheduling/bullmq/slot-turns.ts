import { setTimeout as sleep } from 'node:timers/promises';
import { Signal } from '../recorder';
import type { AnySlotWorker, Turn, TurnTaker } from '../types';

/** Rows that are claimed of one group at once. */
const CLAIM_AT_ONCE = 64;
/**
 * How long a turn waits for a slot of its group: where receivers are quick the turn goes on, and
 * where they are slow the group comes back when a slot empties.
 */
const SLOT_WAIT_MS = 100;
/** The wait on a busy node: then another node may take the group. */
const NODE_WAIT_MS = 500;
/** Claims of this node under way at once: stores make several of them together. */
const CLAIMS_AT_ONCE = 16;
/** The least that a turn's first claim asks for: it cannot know whether there is more. */
const FIRST_CLAIM = 2;
/**
 * The least time between a claim of this node and the next one of a turn that has claimed before,
 * unless half of its slots are free: a claim is a transaction, so slots that empty one by one are
 * filled together. A turn's first claim waits for nobody: many turns wait for a slot of a full node.
 */
const GATHER_MS = 10;
/** If claims take longer than that, twice as much passes as the last one took, up to this. */
const LONGEST_GATHER_MS = 50;
/** So much of a node is filled with rows that are claimed ahead; what is left is for other groups. */
const FILLED_AHEAD = 0.75;
/** When a group is looked at again whose cap other nodes have used up: none of them says when it may go on. */
const REST_MS = 250;
/** The rest if this node used up the cap, which announces its next free slot. */
const OWN_REST_MS = 2000;

interface Claimed {
  /** Nothing more of the group is due. */
  isDrained: boolean;
  isFull: boolean;
  /** Nobody else held any of it. */
  isSole: boolean;
}

/**
 * A slot worker's turn of a group: it claims rows for free slots, and again when some have emptied.
 * Leased rows count towards the group's cap on all nodes, so it claims ahead only while no other node
 * holds any of the group, and only if its rows are quick: with slower ones there is time to claim, and
 * other nodes should get some.
 */
export class SlotTurns implements TurnTaker {
  /** Groups that have a turn now, each with what wakes it. */
  private readonly turns = new Map<number, Signal>();
  /** Groups that have a turn, and whose rows are not to be worked on. */
  private readonly off = new Set<number>();
  /** Groups whose last turn ended although more of them was due. */
  private readonly unfinished = new Set<number>();
  private readonly node = new Signal();
  /** Slots that claims under way are about to fill. */
  private reserved = 0;
  private claims = 0;
  /** When rows were claimed last, of whatever group, on a clock that only goes forward. */
  private claimedAt = Number.NEGATIVE_INFINITY;
  /** How long the last claim took, in milliseconds. */
  private tookMs = 0;

  constructor(private readonly worker: AnySlotWorker) {
    worker.follow((group, wasPerformed) => {
      if (group !== null) this.finished(group, wasPerformed);
      else this.wake();
    });
  }

  async takeTurn(group: number, turn: Turn): Promise<number | null> {
    const { slots, options } = this.worker;
    const { store } = options;
    const signal = new Signal();
    let hasClaimed = false;
    let isSole = true;
    this.turns.set(group, signal);
    this.off.delete(group);
    this.unfinished.add(group);
    try {
      while (!this.worker.stopping && !turn.isOver()) {
        if (hasClaimed) await this.gather(group);
        const seen = { group: signal.count(), node: this.node.count() };
        const room: number = hasClaimed ? this.roomFor(group) : this.firstRoomFor(group);
        const mayBeAhead = isSole && (hasClaimed || this.turns.size === 1);
        const ahead: number = mayBeAhead ? this.roomAhead(group) : 0;
        const wantsRows = room > 0 || ahead > 0;
        const claimed = wantsRows ? await this.claim(group, room, ahead) : null;
        const { isDrained, isFull } = claimed ?? { isDrained: false, isFull: true };
        hasClaimed ||= wantsRows;
        if (claimed) isSole = claimed.isSole;
        if (isDrained || this.off.has(group)) {
          this.unfinished.delete(group);
          return null;
        }
        if (!isFull && this.slotsFor(group) === 0) turn.share();
        if (!isFull) continue;
        // A busy node leaves the group to others at once; a group at its cap is for nobody now.
        if (this.isNodeBusy()) {
          if (!(await this.node.since(seen.node, NODE_WAIT_MS))) return store.now();
        } else if (!(await signal.since(seen.group, SLOT_WAIT_MS))) {
          return store.now() + (slots.freeFor(group) > 0 ? REST_MS : OWN_REST_MS);
        }
      }
      return store.now();
    } finally {
      this.turns.delete(group);
      this.off.delete(group);
    }
  }

  /**
   * A row of the group has left its slot. If it was not worked on, perhaps because its group is off, a
   * turn of the group ends, because only due times tell whether to go on.
   */
  private finished(group: number, wasPerformed: boolean): void {
    const turn = this.turns.get(group);
    if (!wasPerformed) {
      if (turn) this.off.add(group);
      this.unfinished.delete(group);
    }
    this.node.give();
    // A turn under way has just been woken by it.
    if (turn) turn.give();
    else if (this.unfinished.has(group)) this.worker.options.announce(group);
  }

  /** Makes every turn that waits look again. */
  private wake(): void {
    this.node.give();
    for (const turn of [...this.turns.values()]) turn.give();
  }

  private slotsFor(group: number): number {
    const { options, slots } = this.worker;
    const left = options.concurrency - slots.busy - this.reserved;
    return Math.max(0, Math.min(slots.freeFor(group), left, CLAIM_AT_ONCE));
  }

  private mayClaim(): boolean {
    return !this.worker.isHeldUp() && this.claims < CLAIMS_AT_ONCE;
  }

  private isNodeBusy(): boolean {
    const { options, slots } = this.worker;
    return !this.mayClaim() || slots.busy + this.reserved >= options.concurrency;
  }

  private roomFor(group: number): number {
    return this.isNodeBusy() ? 0 : this.slotsFor(group);
  }

  /** A first claim, at the same time as those of other groups with a turn: most have little to do. */
  private firstRoomFor(group: number): number {
    const share = Math.ceil((2 * this.worker.options.concurrency) / this.turns.size);
    return Math.min(this.roomFor(group), Math.max(FIRST_CLAIM, share));
  }

  /** How many to claim where nobody else holds any, with some that wait for a slot. */
  private roomAhead(group: number): number {
    const { options, slots } = this.worker;
    if (!this.mayClaim() || options.limitsOf?.(group).separate || !slots.isQuick(group)) return 0;
    const left = Math.floor(options.concurrency * FILLED_AHEAD) - slots.busy - this.reserved;
    return Math.max(0, Math.min(CLAIM_AT_ONCE, slots.roomFor(group, this.reserved), left));
  }

  private async claim(group: number, room: number, ahead: number): Promise<Claimed> {
    const { concurrencyPerGroup, store } = this.worker.options;
    let answer: Claimed = { isDrained: false, isFull: false, isSole: false };
    const requested = Math.max(room, ahead);
    this.reserved += requested;
    this.claims += 1;
    const begun = performance.now();
    this.claimedAt = begun;
    try {
      await this.worker.take(async () => {
        const own: number[] = [];
        const except: number[] = [];
        for (const [lease, { isDone }] of this.worker.leases) {
          if (lease.group === group) (isDone ? except : own).push(lease.id);
        }
        const { leases, isFull, isSole } = await store.claimWithin(group, room, {
          ...{ atOnce: concurrencyPerGroup, except, ahead: { own, limit: ahead } },
        });
        const isDrained = !isFull && leases.length < (isSole ? requested : room);
        answer = { isDrained, isFull, isSole };
        return leases;
      });
    } finally {
      this.reserved -= requested;
      this.claims -= 1;
      this.tookMs = performance.now() - begun;
      this.node.give();
    }
    return answer;
  }

  private async gather(group: number): Promise<void> {
    const rest = Math.min(Math.max(GATHER_MS, 2 * this.tookMs), LONGEST_GATHER_MS);
    const pause = this.claimedAt + rest - performance.now();
    const isHalfFree = this.roomFor(group) >= this.worker.options.concurrencyPerGroup / 2;
    if (pause > 0 && !isHalfFree) await sleep(pause);
  }
}
