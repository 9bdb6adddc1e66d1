import type { Redis } from 'ioredis';
import { errorText } from '../../runtime/text';

/** BullMQ's keys of a queue, by the last part of each, for every type. */
const KEYS = {
  hash: ['meta'],
  string: ['id', 'pc', 'limiter', 'stalled-check'],
  list: ['wait', 'active', 'paused'],
  set: ['stalled'],
  zset: ['delayed', 'prioritized', 'completed', 'failed', 'waiting-children', 'marker'],
  stream: ['events'],
};

const TICKET = /^[^:]+:\d+:\d+$/;
const LOCK = /^[^:]+:\d+:\d+:lock$/;

const expectedType = (part: string): string | undefined => {
  if (TICKET.test(part)) return 'hash';
  if (LOCK.test(part)) return 'string';
  return Object.entries(KEYS).find(([, parts]) => parts.includes(part))?.[0];
};

/** Deletes a key that still has the type that it was found with. */
const DELETE_AS =
  "if redis.call('TYPE', KEYS[1]).ok == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

const SCANNED_AT_ONCE = '1000';

/** True if Redis refused something because a key holds a value of another type than it is for. */
export const isWrongType = (error: unknown): boolean => /\bWRONGTYPE\b/.test(errorText(error));

type MistypedKey = Record<'key' | 'type', string>;

/** Keys of these `queues` on Redis of another type than BullMQ's: Redis refuses each ticket that touches one. */
export const findMistyped = async (
  redis: Pick<Redis, 'scan' | 'type'>,
  prefix: string,
  queues: readonly string[]
): Promise<MistypedKey[]> => {
  const found: MistypedKey[] = [];
  let cursor = '0';
  do {
    const [next, keys] = await redis.scan(cursor, 'MATCH', `${prefix}:*`, 'COUNT', SCANNED_AT_ONCE);
    cursor = next;
    for (const key of new Set(keys)) {
      const queue = queues.find((name) => key.startsWith(`${prefix}:${name}:`));
      const expected = queue && expectedType(key.slice(`${prefix}:${queue}:`.length));
      if (!expected) continue;
      const type = await redis.type(key);
      if (type !== expected && type !== 'none') found.push({ key, type });
    }
  } while (cursor !== '0');
  return found;
};

/** Removes keys of a queue that hold something of another type. @returns those that were removed */
export const removeMistyped = async (
  redis: Pick<Redis, 'scan' | 'type' | 'eval'>,
  prefix: string,
  queue: string
): Promise<MistypedKey[]> => {
  const removed: MistypedKey[] = [];
  for (const mistyped of await findMistyped(redis, prefix, [queue])) {
    const { key, type } = mistyped;
    if ((await redis.eval(DELETE_AS, 1, key, type)) === 1) removed.push(mistyped);
  }
  return removed;
};

/** Such keys for a person, each with what it holds. */
export const describeMistyped = (keys: readonly MistypedKey[]): string =>
  keys.map(({ key, type }) => `${key} (${type})`).join(', ');

/** A kind of work, as it may stand in keys of Redis. */
export const asPart = (kind: string): string => kind.toLowerCase().replace(/[^a-z0-9]+/g, '-');

/** A kind's queue of one site: sites that share a Redis have queues of their own. */
export const queueName = (kind: string, site: string): string => `${asPart(kind)}-${site}`;

/** BullMQ's key of a paused queue: the field `paused` of a hash, while it is. */
export const pausedField = (prefix: string, queue: string): [key: string, field: string] => [
  `${prefix}:${queue}:meta`,
  'paused',
];
