import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible';
import { createGathering } from '../../runtime/event-loop';
import { digestOf, errorText } from '../../runtime/text';
import { unsealOften } from '../../secrets/secret-box';
import { ITEMS_TABLE, LEVELS_TABLE, LOCATIONS_TABLE, MOVEMENTS_TABLE } from '../../stock/tables';
import { hasArrived, settleArrivedConnections } from '../connections';
import { LIMITS } from '../rules/records';
import {
  type ConnectionRow,
  CONNECTIONS_TABLE,
  POS_EVENTS_TABLE,
  POS_WAITS_TABLE,
} from '../tables';
import { isMissingTable, notReady, Refusal } from './wire';
import type { App } from '../../app';

/** Unix seconds without sign, leading zero or fraction. */
const TIMESTAMP = /^[1-9]\d{0,11}$/;
const SIGNATURE = /^sha256=([0-9a-f]{64})$/i;

interface SignedRequest {
  /** `X-POS-Timestamp` exactly as received. */
  timestamp: string;
  /** `X-POS-Signature` as received; undefined when missing or sent more than once. */
  signature: string | undefined;
  /** The body bytes exactly as received. */
  body: Uint8Array;
}

/**
 * True if the signature is `sha256=` plus the hex (any case) HMAC-SHA256 of timestamp, newline and exact body bytes,
 * keyed with the secret's UTF-8 bytes, prefix included. Constant time, and computed for malformed headers too.
 */
export const verifySignature = (secret: string, { timestamp, signature, body }: SignedRequest) => {
  const expected = createHmac('sha256', secret).update(`${timestamp}\n`).update(body).digest();
  const hex = SIGNATURE.exec(signature ?? '')?.[1];
  const given = hex === undefined ? Buffer.alloc(expected.length) : Buffer.from(hex, 'hex');
  return timingSafeEqual(expected, given) && hex !== undefined;
};

const DUMMY_SECRET = 'no connection has this secret';

/**
 * Judges `X-POS-Timestamp`. The skew is the till's clock minus ours in whole seconds, null if unreadable; a skew of
 * exactly the window passes.
 * @param header as received; undefined if missing or sent more than once
 */
export const judgeTimestamp = (
  header: string | undefined,
  nowMs: number,
  windowSeconds: number = LIMITS.timestampWindowSeconds
): { ok: true; skewSeconds: number } | { ok: false; skewSeconds: number | null } => {
  if (header === undefined || !TIMESTAMP.test(header)) return { ok: false, skewSeconds: null };
  const skewSeconds = Number(header) - Math.floor(nowMs / 1000);
  return { ok: Math.abs(skewSeconds) <= windowSeconds, skewSeconds };
};

export type SignedHeaders = Record<'key' | 'timestamp' | 'signature', string | undefined>;

/** Headers of docs/contract-pos.md#authentication; each undefined if it is missing or was sent more than once. */
export const signedHeaders = ({ headersDistinct }: IncomingMessage): SignedHeaders => {
  // In the lower case that Node reports.
  const [key, timestamp, signature] = ['x-pos-key', 'x-pos-timestamp', 'x-pos-signature'].map(
    (name) => (headersDistinct[name]?.length === 1 ? headersDistinct[name][0] : undefined)
  );
  return { key, timestamp, signature };
};

/**
 * The connection of a key, if it may be used; throws Refusal (401).
 * @param signed what a request signed: unknown keys cost as much as known ones, so timing does not reveal which exist
 */
export const requireConnection = (row: ConnectionRow | null, signed: SignedRequest | null) => {
  if (!row || row.deleted_at !== null) {
    if (signed) verifySignature(DUMMY_SECRET, signed);
    throw new Refusal('unknown_key', 'X-POS-Key is missing or unknown on this site.');
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

/**
 * Authenticates a request (docs/contract-pos.md#authentication): key, timestamp, signature; throws Refusal (401).
 * @returns the connection, and by how much the till's clock is ahead of ours
 */
export const authenticate = (
  app: App,
  row: ConnectionRow | null,
  { timestamp: sent, signature }: SignedHeaders,
  { body, atMs }: { body: Uint8Array; atMs: number }
): { connection: ConnectionRow; skewSeconds: number } => {
  const request = { timestamp: sent ?? '', signature, body };
  const connection = requireConnection(row, request);
  const secret = unsealOften(app, connection.secret);
  if (secret === null) {
    throw new Refusal(
      'secret_unavailable',
      'The stored secret of this connection cannot be read any more: it has to be issued again.'
    );
  }
  const { timestampWindowSeconds: window } = app.options.pos;
  const time = judgeTimestamp(sent, atMs, window);
  if (!time.ok) {
    throw new Refusal(
      'timestamp_outside_window',
      time.skewSeconds === null
        ? 'X-POS-Timestamp must be sent once, as whole Unix seconds.'
        : `X-POS-Timestamp is more than ${window} seconds from the server’s time: check the clock.`,
      { skew_seconds: time.skewSeconds }
    );
  }
  if (!verifySignature(secret, request)) {
    throw new Refusal(
      'signature_mismatch',
      'X-POS-Signature does not match: sign the timestamp, a newline and the exact body bytes.'
    );
  }
  return { connection, skewSeconds: time.skewSeconds };
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

/** The connections of keys, and whether the tables that their requests need are there. */
export class ConnectionLookup {
  private readyUntil = 0;
  private checking: Promise<void> | null = null;
  private readonly load: (digest: string) => Promise<ConnectionRow | null>;

  constructor(private readonly app: App) {
    this.load = createGathering<string, ConnectionRow | null>(
      async (digests) => {
        let rows = await this.read(digests);
        if (rows.some((row) => hasArrived(app, row))) {
          await settleArrivedConnections(app);
          rows = await this.read(digests);
        }
        const found = new Map(rows.map((row) => [row.key_digest, row]));
        return digests.map((digest) => found.get(digest) ?? null);
      },
      { limit: 200, detached: app.detached }
    );
  }

  /** @throws Refusal `not_ready` (503) if a table is missing. Asks at most once a second. */
  async requireReady(): Promise<void> {
    if (Date.now() < this.readyUntil) return;
    this.checking ??= this.app
      .detached(async () => {
        const db = await this.app.db.current();
        try {
          for (const name of TABLES) await db.table(name).select('id').limit(1);
          this.readyUntil = Date.now() + READY_FOR_MS;
        } catch (error) {
          throw isMissingTable(error) ? notReady() : error;
        }
      })
      .finally(() => {
        this.checking = null;
      });
    await this.checking;
  }

  /** The connection of a key. Always from the database: another node may just have revoked it. */
  find(key: string | undefined): Promise<ConnectionRow | null> {
    // A digest of nothing is looked up too: how long it takes must not tell.
    return this.load(keyDigest(key ?? ''));
  }

  private async read(digests: readonly string[]): Promise<ConnectionRow[]> {
    const db = await this.app.db.current();
    return db
      .table(CONNECTIONS_TABLE)
      .select('*')
      .whereIn('key_digest', [...new Set(digests)]);
  }
}

/** The owner's view of a till is at most this old. */
const EVERY_MS = 5_000;

/** Writes when a till was last seen and last refused: rarely, next to its requests. Later changes wait for the next. */
export class LastSeenTracker {
  private readonly lastWrite = new Map<number, number>();
  private readonly pending = new Map<number, Partial<ConnectionRow>>();

  constructor(private readonly app: App) {}

  note(id: number, values: Partial<ConnectionRow>, atMs: number): void {
    const scheduled = this.pending.has(id);
    this.pending.set(id, { ...this.pending.get(id), ...values });
    if (scheduled) return;
    const wait = Math.max(0, (this.lastWrite.get(id) ?? 0) + EVERY_MS - atMs);
    this.lastWrite.set(id, atMs + wait);
    this.app.detached(() => setTimeout(() => void this.write(id), wait).unref());
  }

  private async write(id: number): Promise<void> {
    const values = this.pending.get(id);
    this.pending.delete(id);
    if (!values) return;
    try {
      await (await this.app.db.current()).table(CONNECTIONS_TABLE).where({ id }).update(values);
    } catch (error) {
      this.app.log.debug(`switchboard: a sighting was not written: ${errorText(error)}`);
    }
  }
}

const MINUTE = 60;

export interface LimitVerdict {
  allowed: boolean;
  /** `RateLimit-Policy`, `RateLimit`, and `Retry-After` if it is refused. */
  headers: Record<string, string>;
}

export const verdictOf = (
  name: string,
  quota: number,
  { msBeforeNext, remainingPoints }: Pick<RateLimiterRes, 'msBeforeNext' | 'remainingPoints'>,
  allowed: boolean
): LimitVerdict => {
  const seconds = Math.max(1, Math.ceil(msBeforeNext / 1000));
  return {
    allowed,
    headers: {
      'RateLimit-Policy': `"${name}";q=${quota};w=${MINUTE}`,
      RateLimit: `"${name}";r=${Math.max(0, remainingPoints)};t=${seconds}`,
      ...(!allowed && { 'Retry-After': String(seconds) }),
    },
  };
};

/** Requests a minute that did not fit, and cost nothing. */
const FREE_MISFITS = 3;

/** One limit of this process, charged by key; several nodes count each for themselves. */
export class Limit {
  private readonly limiter: RateLimiterMemory;
  private readonly misfits: RateLimiterMemory;

  constructor(
    private readonly name: string,
    private readonly quota: number
  ) {
    const duration = MINUTE;
    this.limiter = new RateLimiterMemory({ points: quota, duration, keyPrefix: name });
    const keyPrefix = `${name}-misfits`;
    this.misfits = new RateLimiterMemory({ points: FREE_MISFITS, duration, keyPrefix });
  }

  async one(key: string): Promise<LimitVerdict> {
    try {
      return verdictOf(this.name, this.quota, await this.limiter.consume(key), true);
    } catch (refused) {
      return verdictOf(this.name, this.quota, refused as RateLimiterRes, false);
    }
  }

  /** Charges the rest of a request once known; beyond its share it is free a few times a minute, then costs one. */
  async rest(key: string, requested: number): Promise<LimitVerdict> {
    // A cost above the quota passes if nothing else was sent.
    const cost = Math.min(requested, this.quota - 1);
    try {
      return verdictOf(this.name, this.quota, await this.limiter.consume(key, cost), true);
    } catch {
      // The rest is for smaller requests.
      const isFree = await this.misfits.consume(key).then(
        () => true,
        () => false
      );
      const left = await this.limiter.reward(key, cost + (isFree ? 1 : 0));
      return verdictOf(this.name, this.quota, left, false);
    }
  }
}
