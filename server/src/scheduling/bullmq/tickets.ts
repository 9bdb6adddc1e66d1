import type { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { asPart } from './mistyped-keys';

/** Says that a group should have a turn, for each slot if nodes share it. It holds no row that could be lost. */
export interface Ticket {
  /** `ANY_GROUP`: its holder looks for groups that are due. */
  group: number;
  slot: number;
}

/** Ids of groups begin with 1. */
export const ANY_GROUP = 0;

const ADD_AT_ONCE = 500;

/** Three parts without a colon in any: BullMQ takes no other id with colons. */
export const ticketId = (kind: string, { group, slot }: Ticket): string =>
  `${asPart(kind)}:${group}:${slot}`;

export const readTicketId = (id: string | undefined): Ticket | null => {
  const [, group, slot] = /^[^:]+:(\d+):(\d+)$/.exec(id ?? '') ?? [];
  return group === undefined ? null : { group: Number(group), slot: Number(slot) };
};

/** Writes tickets of one kind, concurrent requests together. A ticket that waits or is taken is not duplicated. */
export class Tickets {
  private wanted = new Map<string, Ticket>();

  /** @param refused gets tickets that Redis may not have taken, and why; the work behind them is in the database */
  constructor(
    private readonly kind: string,
    private readonly queue: Pick<Queue, 'addBulk'>,
    private readonly refused: (error: unknown, tickets: readonly Ticket[]) => void
  ) {}

  /** Asks for a ticket, to be written with others of this turn of the event loop. Never throws. */
  ask(ticket: Ticket): void {
    if (this.wanted.size === 0) setImmediate(() => void this.flush());
    this.wanted.set(ticketId(this.kind, ticket), ticket);
  }

  /** Writes what was asked for. Resolves when it is written, or was refused. */
  async flush(): Promise<void> {
    const batch = this.wanted;
    const ids = [...batch.keys()];
    this.wanted = new Map();
    try {
      for (let start = 0; start < ids.length; start += ADD_AT_ONCE) {
        await this.queue.addBulk(
          ids.slice(start, start + ADD_AT_ONCE).map((jobId) => ({
            name: 'turn',
            data: {},
            opts: { jobId, removeOnComplete: true, removeOnFail: true },
          }))
        );
      }
    } catch (error) {
      this.refused(error, [...batch.values()]);
    }
  }
}

/** A ticket that no node takes for this long counts as left over; milliseconds. */
export const LEFT_OVER_MS = 3000;
/** Looks for due groups follow one another quickly; tickets are looked at no more often than this. */
const EVERY_MS = 1000;
/** Tickets that are looked at together: those of the groups that wait longest. */
const LOOKED_AT_ONCE = 200;

/** States of a ticket that is given to a node in its turn. */
const IN_LINE: ReadonlySet<string> = new Set(['waiting', 'prioritized']);

/** Finds tickets that no node gets and that still exist. */
export class LeftOverTickets {
  /** Unlocked tickets by group, and when each was first seen, on a clock that only goes forward. */
  private seen = new Map<number, { since: number; ticket: string }>();
  private lookedAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly kind: string,
    private readonly queue: Pick<Queue, 'toKey' | 'remove' | 'getJobState'>,
    private readonly redis: Pick<Redis, 'pipeline' | 'del'>
  ) {}

  /**
   * Due groups, without a turn here, whose ticket no node gets: BullMQ writes no second one while its key exists.
   * Tickets of a crashed node are freed within `LEFT_OVER_MS`. A waiting ticket is not lost: a free worker gets it.
   */
  async among(groups: readonly number[]): Promise<number[]> {
    const now = performance.now();
    if (now - this.lookedAt < EVERY_MS) return [];
    this.lookedAt = now;
    const some = groups.slice(0, LOOKED_AT_ONCE);
    const tickets = some.length > 0 ? await this.look(some) : [];
    const before = this.seen;
    this.seen = new Map();
    const idle = some.filter((group, at) => {
      const ticket = tickets[at];
      if (ticket === null || ticket === undefined) return false;
      const known = before.get(group);
      const since = known?.ticket === ticket ? known.since : now;
      this.seen.set(group, { since, ticket });
      return now - since >= LEFT_OVER_MS;
    });
    const states = await Promise.all(idle.map((group) => this.queue.getJobState(this.idOf(group))));
    return idle.filter((_group, at) => !IN_LINE.has(String(states[at])));
  }

  /** True if there are unlocked tickets that may be left over. */
  isWatching(): boolean {
    return this.seen.size > 0;
  }

  /** Removes a group's ticket, so that the next one can be written. @returns its key */
  async remove(group: number): Promise<string> {
    const id = this.idOf(group);
    const key = this.queue.toKey(id);
    // BullMQ does not remove a key that is no job, or locked for ever.
    await this.queue.remove(id).catch(() => 0);
    await this.redis.del(key, `${key}:lock`);
    this.seen.delete(group);
    return key;
  }

  private idOf(group: number): string {
    return ticketId(this.kind, { group, slot: 0 });
  }

  /** Tells each group's ticket from a later one; null: there is none, or it is locked. */
  private async look(groups: readonly number[]): Promise<(string | null)[]> {
    const pipeline = this.redis.pipeline();
    for (const group of groups) {
      const key = this.queue.toKey(this.idOf(group));
      pipeline.exists(key).hmget(key, 'timestamp', 'ats').pttl(`${key}:lock`);
    }
    const answers = (await pipeline.exec()) ?? [];
    return groups.map((_group, at) => {
      const [exists, ticket, lock] = answers.slice(3 * at, 3 * at + 3);
      // A lock that does not expire has no holder: a worker that holds a ticket prolongs one that does.
      if (exists?.[1] !== 1 || Number(lock?.[1]) > 0) return null;
      return String(ticket?.[0] ?? ticket?.[1]);
    });
  }
}
