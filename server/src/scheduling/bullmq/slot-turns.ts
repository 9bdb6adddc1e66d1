import { setTimeout as sleep } from 'node:timers/promises';
import { Signal } from '../../runtime/event-loop';
import type { Lease } from '../../queue/queue';
import type { SlotWorker } from '../slot-worker';
import type { Turn } from '../types';

const CLAIM_AT_ONCE = 64;
/** How long a turn waits for a slot of its group: a slow group comes back when a slot empties. */
const SLOT_WAIT_MS = 100;
/** The wait on a busy node: then another node may take the group. */
const NODE_WAIT_MS = 500;
/** Claims of this node under way at once: stores make several of them together. */
const CLAIMS_AT_ONCE = 16;
/** The least that a turn's first claim asks for: it cannot know whether there is more. */
const FIRST_CLAIM = 2;
/** Minimum between a turn's claims on this node, unless half of its slots are free: they are refilled together. */
const GATHER_MS = 10;
/** If claims take longer than that, twice as much passes as the last one took, up to this. */
const LONGEST_GATHER_MS = 50;
/** So much of a node is filled with rows that are claimed ahead; what is left is for other groups. */
const FILLED_AHEAD = 0.75;
/** The next look at a group whose cap other nodes use up: they do not announce when slots are free. */
const REST_MS = 250;
/** The rest if this node used up the cap, which announces its next free slot. */
const OWN_REST_MS = 2000;

/**
 * A slot worker's turn of a group: claims rows for free slots, repeatedly. Leased rows count towards the group's cap on
 * all nodes, so it claims ahead only if no other node holds any of the group and its rows are quick; slow rows leave
 * time to claim, and should be shared with other nodes.
 */
export class SlotTurns {
  /** Groups that have a turn now, each with what wakes it; `isOff`: its rows are not to be worked on. */
  private readonly turns = new Map<number, { signal: Signal; isOff: boolean }>();
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

  constructor(private readonly worker: SlotWorker<Lease, unknown>) {
    worker.shared = this;
  }

  async takeTurn(group: number, turn: Turn): Promise<number | null> {
    const { slots, options } = this.worker;
    const { store } = options;
    const own = { signal: new Signal(), isOff: false };
    let hasClaimed = false;
    let isSole = true;
    this.turns.set(group, own);
    this.unfinished.add(group);
    try {
      while (!this.worker.stopping && !turn.isOver()) {
        if (hasClaimed) await this.gather(group);
        const seen = { group: own.signal.count(), node: this.node.count() };
        const room: number = this.roomFor(group, !hasClaimed);
        const mayBeAhead = isSole && (hasClaimed || this.turns.size === 1);
        const ahead: number = mayBeAhead ? this.roomAhead(group) : 0;
        const wantsRows = room > 0 || ahead > 0;
        const claimed = wantsRows ? await this.claim(group, room, ahead) : null;
        const { isDrained, isFull } = claimed ?? { isDrained: false, isFull: true };
        hasClaimed ||= wantsRows;
        if (claimed) isSole = claimed.isSole;
        if (isDrained || own.isOff) {
          this.unfinished.delete(group);
          return null;
        }
        if (!isFull && this.slotsFor(group) === 0) turn.share();
        if (!isFull) continue;
        // A busy node leaves the group to others at once; a group at its cap has no work for any node.
        if (this.isNodeBusy()) {
          if (!(await this.node.since(seen.node, NODE_WAIT_MS))) return store.now();
        } else if (!(await own.signal.since(seen.group, SLOT_WAIT_MS))) {
          return store.now() + (slots.freeFor(group) > 0 ? REST_MS : OWN_REST_MS);
        }
      }
      return store.now();
    } finally {
      this.turns.delete(group);
    }
  }

  /** A row of the group has left its slot. If it was not worked on, only due times tell whether to go on. */
  finished(group: number, wasPerformed: boolean): void {
    const turn = this.turns.get(group);
    if (!wasPerformed) {
      if (turn) turn.isOff = true;
      this.unfinished.delete(group);
    }
    this.node.give();
    // A turn under way has just been woken by it.
    if (turn) turn.signal.give();
    else if (this.unfinished.has(group)) this.worker.options.announce(group);
  }

  /** Makes every turn that waits look again. */
  wake(): void {
    this.node.give();
    for (const { signal } of [...this.turns.values()]) signal.give();
  }

  private slotsFor(group: number): number {
    const { options, slots } = this.worker;
    const left = options.concurrency - slots.busy - this.reserved;
    return Math.max(0, Math.min(slots.freeFor(group), left, CLAIM_AT_ONCE));
  }

  private mayClaim(): boolean {
    return !this.worker.recorder.isFull() && this.claims < CLAIMS_AT_ONCE;
  }

  private isNodeBusy(): boolean {
    const { options, slots } = this.worker;
    return !this.mayClaim() || slots.busy + this.reserved >= options.concurrency;
  }

  /** @param isFirst at the same time as the first claims of other groups: most have little to do */
  private roomFor(group: number, isFirst = false): number {
    if (this.isNodeBusy()) return 0;
    const share = Math.ceil((2 * this.worker.options.concurrency) / this.turns.size);
    return Math.min(this.slotsFor(group), isFirst ? Math.max(FIRST_CLAIM, share) : CLAIM_AT_ONCE);
  }

  /** How many to claim if no other node holds any, including some that wait for a slot. */
  private roomAhead(group: number): number {
    const { options, slots } = this.worker;
    if (!this.mayClaim() || options.limitsOf?.(group).separate || !slots.isQuick(group)) return 0;
    const left = Math.floor(options.concurrency * FILLED_AHEAD) - slots.busy - this.reserved;
    return Math.max(0, Math.min(CLAIM_AT_ONCE, slots.roomFor(group, this.reserved), left));
  }

  /** @returns whether nothing more is due, the group is at its cap, and whether no other node held any of it */
  private async claim(group: number, room: number, ahead: number) {
    const { concurrencyPerGroup, store } = this.worker.options;
    const requested = Math.max(room, ahead);
    this.reserved += requested;
    this.claims += 1;
    const begun = performance.now();
    this.claimedAt = begun;
    try {
      const { leases, isFull, isSole } = await this.worker.take(() => {
        const own: number[] = [];
        const except: number[] = [];
        for (const [lease, { isDone }] of this.worker.leases) {
          if (lease.group === group) (isDone ? except : own).push(lease.id);
        }
        const cap = { atOnce: concurrencyPerGroup, except, ahead: { own, limit: ahead } };
        return store.claimWithin(group, room, cap);
      });
      return { isDrained: !isFull && leases.length < (isSole ? requested : room), isFull, isSole };
    } finally {
      this.reserved -= requested;
      this.claims -= 1;
      this.tookMs = performance.now() - begun;
      this.node.give();
    }
  }

  private async gather(group: number): Promise<void> {
    const rest = Math.min(Math.max(GATHER_MS, 2 * this.tookMs), LONGEST_GATHER_MS);
    const pause = this.claimedAt + rest - performance.now();
    const isHalfFree = this.roomFor(group) >= this.worker.options.concurrencyPerGroup / 2;
    if (pause > 0 && !isHalfFree) await sleep(pause);
  }
}
