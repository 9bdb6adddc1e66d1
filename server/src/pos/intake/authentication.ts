import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible';
import type { Detached } from '../../database/connection';
import { type ClientAddress, socketLimit } from '../../net/client-address';
import { errorText } from '../../runtime/text';
import { unsealOften } from '../../secrets/secret-box';
import {
  digestOf,
  ITEMS_TABLE,
  LEVELS_TABLE,
  LOCATIONS_TABLE,
  MOVEMENTS_TABLE,
} from '../../stock/tables';
import { hasArrived, settleArrivedConnections } from '../connections';
import { LIMITS } from '../rules/states';
import {
  type ConnectionRow,
  CONNECTIONS_TABLE,
  POS_EVENTS_TABLE,
  POS_WAITS_TABLE,
} from '../tables';
import { createBatcher } from './accept';
import { isMissingTable, notReady, Refusal } from './answers';
import type { App } from '../../app';

/** Header names (docs/contract-pos.md#authentication) in the lower case that Node reports. */
const KEY_HEADER = 'x-pos-key';
const TIMESTAMP_HEADER = 'x-pos-timestamp';
const SIGNATURE_HEADER = 'x-pos-signature';

/** Unix seconds without sign, leading zero or fraction. */
const TIMESTAMP = /^[1-9]\d{0,11}$/;
const SIGNATURE = /^sha256=([0-9a-f]{64})$/i;

const digest = (secret: string, timestamp: string, body: Uint8Array): Buffer =>
  createHmac('sha256', secret).update(`${timestamp}\n`, 'utf8').update(body).digest();

/**
 * The value of `X-POS-Signature`: `sha256=` and the hex HMAC-SHA256 of `timestamp`, a newline and
 * the exact body bytes, keyed with the secret's UTF-8 bytes (the whole string, prefix included).
 */
export const signBody = (secret: string, timestamp: string, body: Uint8Array): string =>
  `sha256=${digest(secret, timestamp, body).toString('hex')}`;

interface SignedRequest {
  /** `X-POS-Timestamp` exactly as received. */
  timestamp: string;
  /** `X-POS-Signature` as received; undefined when missing or sent more than once. */
  signature: string | undefined;
  /** The body bytes exactly as received. */
  body: Uint8Array;
}

/**
 * True if the signature fits. The hex may be in either case. The HMAC is worked out even for a
 * malformed header and compared in constant time, so the answer's time tells nothing.
 */
export const verifySignature = (secret: string, request: SignedRequest): boolean => {
  const expected = digest(secret, request.timestamp, request.body);
  const hex = SIGNATURE.exec(request.signature ?? '')?.[1];
  const given = hex === undefined ? Buffer.alloc(expected.length) : Buffer.from(hex, 'hex');
  return timingSafeEqual(expected, given) && hex !== undefined;
};

const DUMMY_SECRET = 'no connection has this secret';

/**
 * Spends what a verification costs, for a request whose key is unknown: how long the answer takes
 * must not tell which keys exist.
 */
export const spendVerification = (request: SignedRequest): void => {
  verifySignature(DUMMY_SECRET, request);
};

type TimestampVerdict =
  | { ok: true; timestamp: string; skewSeconds: number }
  /** `skewSeconds` is null if the header is missing or unreadable. */
  | { ok: false; skewSeconds: number | null };

/**
 * Judges `X-POS-Timestamp` against the server's clock. The skew is the sender's clock minus ours,
 * in whole seconds: positive when the till is ahead. A skew of exactly the window passes.
 *
 * @param header  the header as received; undefined when missing or sent more than once
 * @param nowMs  the server's time in epoch milliseconds
 */
export const judgeTimestamp = (
  header: string | undefined,
  nowMs: number,
  windowSeconds: number = LIMITS.timestampWindowSeconds
): TimestampVerdict => {
  if (header === undefined || !TIMESTAMP.test(header)) return { ok: false, skewSeconds: null };
  const skewSeconds = Number(header) - Math.floor(nowMs / 1000);
  return Math.abs(skewSeconds) <= windowSeconds
    ? { ok: true, timestamp: header, skewSeconds }
    : { ok: false, skewSeconds };
};

/** A header's value; undefined where it is missing or was sent more than once. */
const singleHeader = (request: IncomingMessage, name: string): string | undefined => {
  const values = request.headersDistinct[name];
  return values?.length === 1 ? values[0] : undefined;
};

export interface SignedHeaders {
  key: string | undefined;
  timestamp: string | undefined;
  signature: string | undefined;
}

export const signedHeaders = (request: IncomingMessage): SignedHeaders => ({
  key: singleHeader(request, KEY_HEADER),
  timestamp: singleHeader(request, TIMESTAMP_HEADER),
  signature: singleHeader(request, SIGNATURE_HEADER),
});

/**
 * The checks of who sent a request (docs/contract-pos.md#authentication); `requests.ts` has their
 * order. Each throws its Refusal (401).
 */

/** @param spend  what an unknown key costs: how long the answer takes must not tell which exist */
export const requireConnection = (row: ConnectionRow | null, spend: () => void): ConnectionRow => {
  if (!row || row.deleted_at !== null) {
    spend();
    throw new Refusal('unknown_key', 'X-POS-Key is missing or is no key of this site.');
  }
  if (row.revoked_at !== null) {
    throw new Refusal('revoked_key', 'The connection of this key was revoked.');
  }
  if (!row.active) {
    throw new Refusal(
      'revoked_key',
      `The connection of this key is switched off.${row.disabled_reason ? ` ${row.disabled_reason}` : ''}`
    );
  }
  return row;
};

/** `requireConnection` for a request that is signed. */
export const requireSigner = (
  row: ConnectionRow | null,
  { timestamp, signature }: SignedHeaders,
  body: Uint8Array
): ConnectionRow =>
  requireConnection(row, () => spendVerification({ timestamp: timestamp ?? '', signature, body }));

export const requireSecret = (app: App, connection: ConnectionRow): string => {
  const secret = unsealOften(app, connection.secret);
  if (secret !== null) return secret;
  throw new Refusal(
    'secret_unavailable',
    'The stored secret of this connection cannot be read any more: it has to be issued again.'
  );
};

/** A timestamp within the window; `skewSeconds` is the till's clock minus ours. */
export const requireTime = (
  { timestamp }: SignedHeaders,
  nowMs: number,
  windowSeconds: number
): { timestamp: string; skewSeconds: number } => {
  const time = judgeTimestamp(timestamp, nowMs, windowSeconds);
  if (time.ok) return time;
  throw new Refusal(
    'timestamp_outside_window',
    time.skewSeconds === null
      ? 'X-POS-Timestamp must be sent once, as whole Unix seconds.'
      : `X-POS-Timestamp is more than ${windowSeconds} seconds from the server’s time: check the clock.`,
    { skew_seconds: time.skewSeconds }
  );
};

/** @param timestamp  as `requireTime` found it good */
export const requireSignature = (
  secret: string,
  timestamp: string,
  { signature }: SignedHeaders,
  body: Uint8Array
): void => {
  if (verifySignature(secret, { timestamp, signature, body })) return;
  throw new Refusal(
    'signature_mismatch',
    'X-POS-Signature does not fit: sign the timestamp, a newline and the exact body bytes.'
  );
};

export const keyDigest = (key: string): string => digestOf(`key:${key}`);

const READY_FOR_MS = 1000;

const TABLES = [
  CONNECTIONS_TABLE,
  POS_EVENTS_TABLE,
  POS_WAITS_TABLE,
  ITEMS_TABLE,
  LOCATIONS_TABLE,
  LEVELS_TABLE,
  MOVEMENTS_TABLE,
];

export interface ConnectionLookup {
  /** @throws Refusal `not_ready` (503) where a table is missing. Asks at most once a second. */
  requireReady(): Promise<void>;
  /** The connection of a key. Always from the database: another node may just have revoked it. */
  find(key: string | undefined): Promise<ConnectionRow | null>;
}

export const createConnectionLookup = (app: App, detached: Detached): ConnectionLookup => {
  let readyUntil = 0;
  let checking: Promise<void> | null = null;

  const check = async (): Promise<void> => {
    const db = await app.db.current();
    try {
      for (const name of TABLES) await db.table(name).select('id').limit(1);
      readyUntil = Date.now() + READY_FOR_MS;
    } catch (error) {
      throw isMissingTable(error) ? notReady() : error;
    }
  };

  const load = createBatcher<string, ConnectionRow | null>(detached, 200, async (digests) => {
    const db = await app.db.current();
    const read = async (): Promise<ConnectionRow[]> =>
      db
        .table(CONNECTIONS_TABLE)
        .select('*')
        .whereIn('key_digest', [...new Set(digests)]);
    let rows = await read();
    if (rows.some((row) => hasArrived(app, row))) {
      await settleArrivedConnections(app);
      rows = await read();
    }
    const found = new Map(rows.map((row) => [row.key_digest, row]));
    return digests.map((digest) => ({ ok: true, value: found.get(digest) ?? null }));
  });

  return {
    async requireReady() {
      if (Date.now() < readyUntil) return;
      checking ??= detached(check).finally(() => {
        checking = null;
      });
      await checking;
    },
    // A digest of nothing is looked up too: how long it takes must not tell.
    find: (key) => load(keyDigest(key ?? '')),
  };
};

/** What the owner is told about a till is at most this old. */
const EVERY_MS = 5_000;

export interface LastSeenTracker {
  /** A request that was signed by the connection. */
  seen(connection: ConnectionRow, skewSeconds: number, atMs: number): void;
  /** A request of the connection's key that was refused. */
  failed(connection: ConnectionRow, code: string, atMs: number): void;
}

/**
 * Writes when a till was last seen and what it was last refused for: beside its requests, seldom,
 * and never in their way. What is written in between waits for the next time.
 */
export const createLastSeenTracker = (app: App, detached: Detached): LastSeenTracker => {
  const lastWrite = new Map<number, number>();
  const pending = new Map<number, Record<string, number | string>>();

  const write = async (id: number): Promise<void> => {
    const values = pending.get(id);
    pending.delete(id);
    if (!values) return;
    try {
      await (await app.db.current()).table(CONNECTIONS_TABLE).where({ id }).update(values);
    } catch (error) {
      app.log.debug(`switchboard: a sighting was not written: ${errorText(error)}`);
    }
  };

  const note = (id: number, values: Record<string, number | string>, atMs: number): void => {
    const scheduled = pending.has(id);
    pending.set(id, { ...pending.get(id), ...values });
    if (scheduled) return;
    const wait = Math.max(0, (lastWrite.get(id) ?? 0) + EVERY_MS - atMs);
    lastWrite.set(id, atMs + wait);
    detached(() => setTimeout(() => void write(id), wait).unref());
  };

  return {
    seen: ({ id }, skewSeconds, atMs) =>
      note(id, { last_seen_at: atMs, clock_skew_seconds: skewSeconds }, atMs),
    failed: ({ id }, code, atMs) => note(id, { last_error: code, last_error_at: atMs }, atMs),
  };
};

const MINUTE = 60;

/** What a limiter said about one request. */
export interface LimitVerdict {
  allowed: boolean;
  /** `RateLimit-Policy`, `RateLimit`, and `Retry-After` where it is refused. */
  headers: Record<string, string>;
}

export interface RateLimits {
  /**
   * Charges a connection for one request, once its signature was found right: a key alone must burn
   * nothing.
   */
  chargeConnection(connection: number): Promise<LimitVerdict>;
  /**
   * Charges what a request counts for besides, once that is known. Where that does not fit, the
   * request costs nothing, the first times in a minute; to read more of them costs one each.
   */
  chargeRest(connection: number, cost: number): Promise<LimitVerdict>;
  /** Charges a failed authentication to the client's address and to the connection's own. */
  chargeFailure(address: ClientAddress): Promise<LimitVerdict>;
  /** Charges a ping to its key and address together: nobody burns it for somebody else. */
  chargePing(connection: number, address: ClientAddress): Promise<LimitVerdict>;
}

const verdictOf = (
  name: string,
  quota: number,
  result: RateLimiterRes,
  allowed: boolean
): LimitVerdict => {
  const seconds = Math.max(1, Math.ceil(result.msBeforeNext / 1000));
  return {
    allowed,
    headers: {
      'RateLimit-Policy': `"${name}";q=${quota};w=${MINUTE}`,
      RateLimit: `"${name}";r=${Math.max(0, result.remainingPoints)};t=${seconds}`,
      ...(!allowed && { 'Retry-After': String(seconds) }),
    },
  };
};

/** Requests a minute that did not fit, and cost nothing. */
const FREE_MISFITS = 3;

const createCharge = (name: string, quota: number) => {
  const limiter = new RateLimiterMemory({ points: quota, duration: MINUTE, keyPrefix: name });
  const misfits = new RateLimiterMemory({
    points: FREE_MISFITS,
    duration: MINUTE,
    keyPrefix: `${name}-misfits`,
  });
  const isFree = (key: string): Promise<boolean> =>
    misfits.consume(key).then(
      () => true,
      () => false
    );
  return {
    async one(key: string): Promise<LimitVerdict> {
      try {
        return verdictOf(name, quota, await limiter.consume(key), true);
      } catch (refused) {
        return verdictOf(name, quota, refused as RateLimiterRes, false);
      }
    },
    async rest(key: string, asked: number): Promise<LimitVerdict> {
      // What costs more than there ever is passes where nothing else was sent.
      const cost = Math.min(asked, quota - 1);
      try {
        return verdictOf(name, quota, await limiter.consume(key, cost), true);
      } catch {
        // What is left is for smaller requests.
        const back = cost + ((await isFree(key)) ? 1 : 0);
        return verdictOf(name, quota, await limiter.reward(key, back), false);
      }
    },
  };
};

/** Limits of this process; several nodes count each for themselves. */
export const createRateLimits = (options: {
  ratePerMinute: number;
  failedAuthPerMinute: number;
}): RateLimits => {
  const connection = createCharge('connection', options.ratePerMinute);
  const perAddress = options.failedAuthPerMinute;
  const failure = createCharge('authentication', perAddress);
  const sockets = new Map<number, ReturnType<typeof createCharge>>();
  const socketsOf = (limit: number) => {
    const charge = sockets.get(limit) ?? createCharge('authentication', limit);
    sockets.set(limit, charge);
    return charge;
  };
  const ping = createCharge('ping', options.ratePerMinute);
  return {
    chargeConnection: (id) => connection.one(String(id)),
    chargeRest: (id, cost) => connection.rest(String(id), cost),
    async chargeFailure(address) {
      const { client, socket } = address;
      const verdict = await failure.one(client);
      if (socket === null) return verdict;
      const shared = await socketsOf(socketLimit(perAddress, address)).one(socket);
      return verdict.allowed ? shared : verdict;
    },
    chargePing: (id, { client }) => ping.one(`${id}/${client}`),
  };
};
