/** A kind of work, as it may stand in keys of Redis. */
export const asPart = (kind: string): string => kind.toLowerCase().replace(/[^a-z0-9]+/g, '-');

/** A kind's queue of one site: sites that share a Redis have queues of their own. */
export const queueName = (kind: string, site: string): string => `${asPart(kind)}-${site}`;

/** Where BullMQ keeps whether a queue is paused: the field `paused` of a hash, while it is. */
export const pausedField = (prefix: string, queue: string): [key: string, field: string] => [
  `${prefix}:${queue}:meta`,
  'paused',
];
