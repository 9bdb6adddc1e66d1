import type { Received, Receiver } from '../support/receiver';
import type { Site } from '../support/site';

/** What arrived of each record, oldest first. */
export interface WatchedOrder {
  /** The changes of each record that were answered 2xx. */
  readonly delivered: ReadonlyMap<string, number[]>;
  /** Records of which a post came while another one was under way. */
  readonly twoAtOnce: readonly string[];
  /** Attempts that were answered 500. */
  failed(): number;
}

/** A change of a record, as a post tells it. */
export interface Change {
  record: string;
  nth: number;
}

/**
 * Has a receiver note the order of what it gets, and answer 500 to a part of it.
 * @param part of all posts, 0 to 1
 * @param chance gives 0 to below 1 for each post
 */
export const watchOrder = (
  receiver: Receiver,
  part: number,
  changeOf: (post: Received) => Change = ({ json }) => json.data as Change,
  chance: () => number = Math.random
): WatchedOrder => {
  const delivered = new Map<string, number[]>();
  const underWay = new Set<string>();
  const twoAtOnce: string[] = [];
  let failed = 0;
  receiver.respond(async (post) => {
    const { record, nth } = changeOf(post);
    if (underWay.has(record)) twoAtOnce.push(record);
    underWay.add(record);
    await new Promise((done) => setTimeout(done, 2));
    underWay.delete(record);
    if (chance() < part) {
      failed += 1;
      return { status: 500 };
    }
    delivered.set(record, [...(delivered.get(record) ?? []), nth]);
    return {};
  });
  return { delivered, twoAtOnce, failed: () => failed };
};

/** Publishes the nth change of each of so many records, one after the other. */
export const changeRecords = (node: Site, count: number, nth: number): Promise<void> =>
  node.evaluate(
    async ({ strapi }, records, change) => {
      for (let at = 0; at < records; at += 1) {
        const record = String(at);
        const subject = { type: 'contact', id: record, label: 'x' };
        const event = { event: 'shop.changed', data: { record, nth: change }, subject };
        await strapi.service('plugin::switchboard.publisher').publish([event]);
      }
    },
    count,
    nth
  );

/** Options of a site whose receiver fails often, and is tried again soon. */
export const TRIED_SOON = {
  retryScheduleSeconds: Array<number>(12).fill(1),
  pollSeconds: 1,
  disableAfterFailures: 1000,
};

/** `0` to one less than `count`: the changes of a record in order. */
export const allChanges = (count: number): number[] =>
  Array.from({ length: count }, (_none, nth) => nth);
