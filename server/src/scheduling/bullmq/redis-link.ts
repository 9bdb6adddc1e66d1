import type { Redis, RedisOptions } from 'ioredis';
import { errorText } from '../../runtime/text';
import type { BullmqPackages } from './packages';

export interface LinkLog {
  warn(message: string): void;
  info(message: string): void;
}

export interface RedisLink {
  /** For what must not wait: while Redis is away, each command fails at once. */
  readonly commands: Redis;
  /** For workers, whose commands wait until Redis is back. */
  readonly workers: Redis;
  /** Whether tickets can be written now. */
  isThere(): boolean;
  /** Resolves when it is known for the first time whether Redis is there. */
  readonly known: Promise<void>;
  /** To be told what Redis refused, although the connection to it may stand. */
  refused(error: unknown): void;
  /** Hears whenever Redis has gone away or come back. */
  onChange(listener: (isThere: boolean) => void): void;
  close(): void;
}

const CONNECT_TIMEOUT_MS = 2000;
/** A command that takes longer says that Redis hangs. */
const COMMAND_TIMEOUT_MS = 2000;
const PROBE_EVERY_MS = 1000;
/** Who has not said by then whether Redis is there does without it for now. */
const KNOWN_AFTER_MS = 3000;
/** The wait is counted in steps: a process that is busy while it boots hears late what Redis answered. */
const STEP_MS = 100;

/**
 * Connects to Redis and watches it. Says once that it is away and once that it is back, however long
 * that takes; nothing else is said of its connections.
 * @param redis a `redis://` URL or connection options, docs/operations.md#redis
 */
export const connectRedis = (
  { Redis: Client }: Pick<BullmqPackages, 'Redis'>,
  { redis, prefix }: { redis: string | RedisOptions; prefix: string },
  log: LinkLog
): RedisLink => {
  const connect = (settings: RedisOptions): Redis => {
    const common: RedisOptions = {
      connectTimeout: CONNECT_TIMEOUT_MS,
      retryStrategy: (times) => Math.min(times * 50, PROBE_EVERY_MS),
      // BullMQ refuses anything else: its workers wait for Redis as long as it takes.
      maxRetriesPerRequest: null,
      ...settings,
    };
    return typeof redis === 'string'
      ? new Client(redis, common)
      : new Client({ ...redis, ...common });
  };
  const commands = connect({ enableOfflineQueue: false, commandTimeout: COMMAND_TIMEOUT_MS });
  const workers = connect({});
  const { host, port, path } = commands.options;
  const where = path ?? `${host}:${port}`;
  const listeners: ((isThere: boolean) => void)[] = [];
  let state: 'unknown' | 'there' | 'away' = 'unknown';
  let closed = false;
  let reason: unknown = new Error('no answer');
  let probe: NodeJS.Timeout | undefined;
  let becomeKnown: () => void;
  const known = new Promise<void>((resolve) => {
    becomeKnown = resolve;
  });

  const change = (next: 'there' | 'away'): void => {
    if (closed || state === next) return;
    const isFirst = state === 'unknown';
    state = next;
    if (next === 'away') {
      log.warn(
        `switchboard: Redis at ${where} is away (${errorText(reason)}). This process goes on with the embedded scheduler until it is back.`
      );
    } else if (!isFirst) {
      log.info(`switchboard: Redis at ${where} is back, and nodes share their work over it again.`);
    }
    becomeKnown();
    for (const listener of listeners) listener(next === 'there');
  };

  /** A connection that stands says little: Redis may be full, or only be read from. */
  const tryOut = async (): Promise<void> => {
    clearTimeout(probe);
    if (closed) return;
    try {
      await commands.set(`${prefix}:probe`, '1', 'PX', PROBE_EVERY_MS);
      change('there');
    } catch (error) {
      reason = error;
      change('away');
      // A connection that has closed tells by itself when it is open again.
      if (commands.status !== 'ready') return;
      probe = setTimeout(() => void tryOut(), PROBE_EVERY_MS);
      probe.unref();
    }
  };

  // One that wants a password, for instance, neither becomes ready nor closes the connection.
  let stepsLeft = KNOWN_AFTER_MS / STEP_MS;
  const waiting = setInterval(() => {
    stepsLeft -= 1;
    if (state === 'unknown' && stepsLeft <= 0) change('away');
    if (state !== 'unknown') clearInterval(waiting);
  }, STEP_MS);
  waiting.unref();

  commands.on('ready', () => {
    reason = new Error('the connection was closed');
    void tryOut();
  });
  commands.on('error', (error: unknown) => {
    reason = error;
  });
  commands.on('close', () => change('away'));
  // The other connection has the same to say.
  workers.on('error', () => {});

  return {
    commands,
    workers,
    known,
    isThere: () => state === 'there',
    refused(error) {
      if (state !== 'there') return;
      reason = error;
      change('away');
      probe = setTimeout(() => void tryOut(), PROBE_EVERY_MS);
      probe.unref();
    },
    onChange: (listener) => void listeners.push(listener),
    close() {
      closed = true;
      clearTimeout(probe);
      clearInterval(waiting);
      commands.disconnect();
      workers.disconnect();
    },
  };
};
