import type { Queue } from 'bullmq';
import { asPart } from './queue-keys';

/**
 * A ticket says that a group should have a turn, and no more: no row, no payload, nothing that would
 * be lost with it. A group that several nodes work on has a ticket for each of its slots.
 */
export interface Ticket {
  /** `ANY_GROUP`: whoever takes it looks for groups that are due. */
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

export interface Tickets {
  /** Asks for a ticket, to be written with others of this turn of the event loop. Never throws. */
  ask(ticket: Ticket): void;
  /** Writes what was asked for. Resolves when it is written, or was refused. */
  flush(): Promise<void>;
}

/**
 * Writes tickets of one kind, those that were asked for at the same moment together. A ticket that is
 * there already, waiting or in somebody's hands, stays the only one.
 * @param refused hears of tickets that Redis may not have taken, and why; what they stand for is in the
 * database
 */
export const createTickets = (
  kind: string,
  queue: Pick<Queue, 'addBulk'>,
  refused: (error: unknown, tickets: readonly Ticket[]) => void
): Tickets => {
  let wanted = new Map<string, Ticket>();

  const flush = async (): Promise<void> => {
    const asked = wanted;
    const ids = [...asked.keys()];
    wanted = new Map();
    try {
      for (let start = 0; start < ids.length; start += ADD_AT_ONCE) {
        await queue.addBulk(
          ids.slice(start, start + ADD_AT_ONCE).map((jobId) => ({
            name: 'turn',
            data: {},
            opts: { jobId, removeOnComplete: true, removeOnFail: true },
          }))
        );
      }
    } catch (error) {
      refused(error, [...asked.values()]);
    }
  };

  return {
    ask(ticket) {
      if (wanted.size === 0) setImmediate(() => void flush());
      wanted.set(ticketId(kind, ticket), ticket);
    },
    flush,
  };
};
