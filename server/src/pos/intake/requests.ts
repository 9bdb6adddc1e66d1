import type { Context } from 'koa';
import type {
  BatchAnswer,
  BatchResult,
  CatalogueAnswer,
  Ping,
} from '../../../../shared/contracts/till-answers';
import { createDetached } from '../../database/connection';
import { createFaultLog, isInfrastructureFault } from '../../database/retry';
import type { ControllerFactory } from '../../http/guarded-route';
import { clientAddress } from '../../net/client-address';
import { inTurns, type Steps, TimeSlice } from '../../runtime/event-loop';
import { errorText } from '../../runtime/text';
import { type CatalogueAsked, readCatalogue } from '../../stock/catalogue';
import { digestOf } from '../../stock/tables';
import { defaultLocation } from '../../stock/locations';
import { productFieldsText } from '../../stock/products';
import {
  batchSteps,
  type CatalogueRequest,
  catalogueSteps,
  type Enclosed,
  statusSteps,
  validationSteps,
} from '../rules/envelopes';
import {
  type AskingKind,
  ERROR_STATUS,
  LIMITS,
  type RecordKind,
  SCHEMA_VERSION,
} from '../rules/records';
import type { BodyIssue } from '../rules/strict-json';
import { mappedLocations } from '../connections';
import type { ConnectionRow } from '../tables';
import { createIngestion, type Ingestion, type Submission, submissionOf } from './accept';
import {
  answer,
  answerOfAcceptance,
  answerRefusal,
  bodyOfRefusal,
  hostFailure,
  isMissingTable,
  notReady,
  Refusal,
  requireRecord,
  requireScope,
  requireSize,
  schemaInvalid,
  tooLarge,
} from './answers';
import { answerStatus, previewOf } from './asking';
import {
  ConnectionLookup,
  LastSeenTracker,
  type LimitVerdict,
  RateLimits,
  requireConnection,
  requireSecret,
  requireSignature,
  requireSigner,
  requireTime,
  signedHeaders,
} from './authentication';
import { answerClosing } from '../closings';
import { rawBodyOf } from './raw-body';
import {
  createRefusedRequests,
  type Sender,
  type SignedBody,
  type TillRequest,
  tooMany,
} from './refusals';
import { type App, appOf } from '../../app';

/** An entry of a batch as it was read: a record to be judged, or what is wrong with the entry. */
type BatchEntry = { ok: true; value: Enclosed } | { ok: false; issue: BodyIssue };

/** What a batch counts for in the rate limit, as does a status request (docs/tills.md#batches). */
const costOf = (records: number): number => Math.max(1, Math.ceil(records / LIMITS.recordsACharge));

interface Signed {
  connection: ConnectionRow;
  receivedAtMs: number;
}

/** Keeps what one entry was refused for its owner to see. */
type Keep = (
  kind: RecordKind | 'batch',
  refusal: Refusal,
  signed: SignedBody | null
) => Promise<unknown>;

type Judged = { kind: RecordKind; submission: Submission } | { refusal: Refusal };

const resultOfRefusal = (refusal: Refusal): BatchResult => ({
  status: ERROR_STATUS[refusal.code],
  ...bodyOfRefusal(refusal),
});

/**
 * Answers the records of a batch, each with what its own route would have answered, in the order
 * sent (docs/tills.md#batches). They are handed to the ingestion in that order and in one go, so they
 * take effect in it and share their commits.
 */
const createBatchAnswers = (app: App, ingest: Ingestion) => {
  const { maxBodyBytes } = app.options.pos;
  const judge = async (
    entry: BatchEntry,
    { connection, receivedAtMs }: Signed,
    keep: Keep
  ): Promise<Judged> => {
    if (!entry.ok) {
      const refusal = schemaInvalid('batch', entry.issue);
      await keep('batch', refusal, null);
      return { refusal };
    }
    const { kind, body } = entry.value;
    try {
      requireSize(body, maxBodyBytes); // 413 payload_too_large
      requireScope(connection, kind); // 403 insufficient_scope
      const record = await requireRecord(kind, body, receivedAtMs); // 400 schema_invalid
      return { kind, submission: submissionOf(connection, record, body, receivedAtMs) };
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      await keep(kind, error, { body, record: null });
      return { refusal: error };
    }
  };

  /** 200 duplicate, 409 stale_count, 202; a record that cannot be stored fails alone. */
  const accept = async (judged: Judged, keep: Keep): Promise<BatchResult> => {
    if ('refusal' in judged) return resultOfRefusal(judged.refusal);
    const { kind, submission } = judged;
    try {
      const { status, body } = answerOfAcceptance(kind, await ingest(submission));
      return { status, ...body };
    } catch (error) {
      if (error instanceof Refusal) {
        const { record, body } = submission;
        await keep(kind, error, { body: Buffer.from(body, 'utf8'), record });
        return resultOfRefusal(error);
      }
      // The database is away for all of them: the whole is answered 503 and may be sent again.
      if (isMissingTable(error) || isInfrastructureFault(error)) throw error;
      app.log.error(`switchboard: a record of a batch was not accepted: ${errorText(error)}`);
      return { status: 500, ...hostFailure(500) };
    }
  };

  /** @throws the database's error where it could not be asked; what was accepted stays accepted */
  return async (
    entries: readonly BatchEntry[],
    signed: Signed,
    keep: Keep
  ): Promise<BatchResult[]> => {
    const slice = new TimeSlice();
    const judged: Judged[] = [];
    for (const entry of entries) {
      if (slice.isOver()) await slice.next();
      judged.push(await judge(entry, signed, keep));
    }
    const results = await Promise.allSettled(judged.map((one) => accept(one, keep)));
    return results.map((result) => {
      if (result.status === 'rejected') throw result.reason;
      return result.value;
    });
  };
};

/** A location as the catalogue names it; the single store has no name for its own. */
interface Shelf {
  ref: string | null;
  location: number;
}

const shelvesOf = async (app: App, connection: ConnectionRow): Promise<Shelf[]> => {
  const mapped = mappedLocations(connection);
  if (mapped.length > 0) return mapped;
  const { id } = await defaultLocation(await app.db.current());
  return [{ ref: null, location: Number(id) }];
};

/** `<number of the last change>.<what the answers were made of><the epoch of the number>` */
const CURSOR = /^(\d{1,15})\.([0-9a-f]{8})([0-9a-f]{8})$/;

/** Cursors of other locations, or of other fields of the site's products, start anew. */
const originOf = (app: App, id: number, shelves: readonly Shelf[]): string =>
  digestOf(JSON.stringify([id, shelves, productFieldsText(app)])).slice(0, 8);

const readCursor = (cursor: string | null, origin: string): CatalogueAsked['after'] => {
  if (cursor === null) return null;
  const [, number, made, epoch] = CURSOR.exec(cursor) ?? [];
  if (number === undefined || epoch === undefined) {
    const message = 'cursor must be the cursor of an answer, as it came, or be left out';
    throw schemaInvalid('catalogue', { field: 'cursor', message });
  }
  return made === origin ? { number: Number(number), epoch } : null;
};

/** Entries of stock in one answer: what a connection of hundreds of locations gets has fewer items. */
const ENTRIES = 20_000;

/**
 * A page of the catalogue (docs/tills.md#the-catalogue).
 * @throws Refusal where the cursor is none
 */
const answerCatalogue = async (
  app: App,
  connection: ConnectionRow,
  { cursor, limit }: CatalogueRequest
): Promise<CatalogueAnswer> => {
  const shelves = await shelvesOf(app, connection);
  const origin = originOf(app, Number(connection.id), shelves);
  const page = await readCatalogue(app, {
    after: readCursor(cursor, origin),
    limit: Math.min(limit, Math.max(1, Math.floor(ENTRIES / shelves.length))),
    locations: [...new Set(shelves.map(({ location }) => location))],
  });
  return {
    ok: true,
    items: page.items.map(({ quantities, ...item }) => ({
      sku: item.sku,
      gtin: item.gtin,
      name: item.name,
      price: item.price,
      currency: item.currency,
      stock: shelves.map(({ ref, location }) => ({
        location_ref: ref,
        quantity: quantities.get(location) ?? 0,
      })),
      deleted: item.deleted,
    })),
    cursor: `${page.last}.${origin}${page.epoch}`,
    has_more: page.hasMore,
  };
};

const requireBody = (ctx: Context): Buffer => {
  const body = rawBodyOf(ctx.req);
  switch (body.kind) {
    case 'bytes':
      return body.bytes;
    case 'encoded':
      throw new Refusal(
        'unsupported_encoding',
        'Send the body as it is, without a Content-Encoding.'
      );
    case 'too_large':
      throw tooLarge();
    case 'broken':
      throw new Refusal('schema_invalid', 'body must arrive whole');
  }
};

/** Who sent a part of a body; the part itself where it can be told from the rest. */
const enclosedSender = (connection: ConnectionRow, part: SignedBody | null): Sender => ({
  proof: 'signature',
  connection,
  ...(part ?? { body: Buffer.alloc(0), record: null }),
});

/** Says in the answer what is left, whatever the answer will be. */
const requireRate = (ctx: Context, verdict: LimitVerdict): void => {
  for (const [name, value] of Object.entries(verdict.headers)) ctx.set(name, value);
  if (!verdict.allowed) throw tooMany(verdict);
};

/** Reads a body in turns with other requests: what it was read as. */
const requireRead = async <T>(
  kind: AskingKind,
  steps: Steps<{ ok: true; value: T } | { ok: false; issue: BodyIssue }>
): Promise<T> => {
  const reading = await inTurns(steps);
  if (!reading.ok) throw schemaInvalid(kind, reading.issue);
  return reading.value;
};

/**
 * Everything a till's request passes through; one a process. The order of the checks is a promise to
 * tills (docs/tills.md#answers): the first that fails answers.
 */
export class Checks {
  private readonly lookup: ConnectionLookup;
  private readonly limits: RateLimits;
  private readonly lastSeen: LastSeenTracker;
  private readonly ingest: Ingestion;
  private readonly refused: ReturnType<typeof createRefusedRequests>;
  private readonly answerBatch: ReturnType<typeof createBatchAnswers>;
  private readonly logFault: ReturnType<typeof createFaultLog>;

  constructor(private readonly app: App) {
    const detached = createDetached();
    this.lookup = new ConnectionLookup(app, detached);
    this.limits = new RateLimits(app.options.pos);
    this.lastSeen = new LastSeenTracker(app, detached);
    this.ingest = createIngestion(app, detached);
    const { lookup, limits, lastSeen } = this;
    this.refused = createRefusedRequests(app, { detached, lookup, limits, lastSeen });
    this.answerBatch = createBatchAnswers(app, this.ingest);
    this.logFault = createFaultLog(app.log);
  }

  /** `POST /sale`, `/refund`, `/inventory`. */
  receive(ctx: Context, kind: RecordKind): Promise<void> {
    return this.serve(ctx, kind, async (request) => {
      const { atMs } = request;
      const { connection, body } = await this.requireSigned(request);
      await this.charge(ctx, connection);
      requireScope(connection, kind); // 403 insufficient_scope
      const record = await requireRecord(kind, body, atMs); // 400 schema_invalid
      request.sender = { proof: 'signature', connection, body, record };
      const acceptance = await this.ingest(submissionOf(connection, record, body, atMs));
      // 200 duplicate, 409 stale_count, 202
      const { status, body: answered } = answerOfAcceptance(kind, acceptance);
      answer(ctx, status, answered);
    });
  }

  /** `POST /closing`: a shift's sums, compared with the records (docs/tills.md#closing-a-shift). */
  closing(ctx: Context): Promise<void> {
    return this.serve(ctx, 'closing', async (request) => {
      const { connection, body } = await this.requireSigned(request);
      await this.charge(ctx, connection);
      requireScope(connection, 'closing');
      const record = await requireRecord('closing', body, request.atMs);
      request.sender = { proof: 'signature', connection, body, record };
      // 200 duplicate, 202
      const { status, body: answered } = await answerClosing(
        this.app,
        submissionOf(connection, record, body, request.atMs)
      );
      answer(ctx, status, answered);
    });
  }

  /** `POST /batch`: records, each answered by itself (docs/tills.md#batches). */
  batch(ctx: Context): Promise<void> {
    return this.serve(ctx, 'batch', async (request) => {
      const { connection, body } = await this.requireSigned(request);
      await this.charge(ctx, connection);
      const entries = await requireRead('batch', batchSteps(body));
      await this.chargeRest(ctx, connection, entries.length);
      const signed = { connection, receivedAtMs: request.atMs };
      const results = await this.answerBatch(entries, signed, (kind, refusal, record) =>
        this.refused({ ...request, kind, sender: enclosedSender(connection, record) }, refusal)
      );
      answer(ctx, 200, { ok: true, results } satisfies BatchAnswer);
    });
  }

  /** `POST /validate`: what a record would become (docs/tills.md#trying-a-record). */
  validate(ctx: Context): Promise<void> {
    return this.serve(ctx, 'validate', async (request) => {
      const { connection, body: envelope } = await this.requireSigned(request);
      await this.charge(ctx, connection);
      const { kind, body } = await requireRead('validate', validationSteps(envelope));
      request.sender = { proof: 'signature', connection, body, record: null };
      requireSize(body, this.app.options.pos.maxBodyBytes);
      requireScope(connection, kind);
      const record = await requireRecord(kind, body, request.atMs);
      request.sender = { proof: 'signature', connection, body, record };
      const submission = submissionOf(connection, record, body, request.atMs);
      answer(ctx, 200, await previewOf(this.app, submission));
    });
  }

  /** `POST /status`: what became of records (docs/tills.md#what-became-of-a-record). */
  status(ctx: Context): Promise<void> {
    return this.serve(ctx, 'status', async (request) => {
      const { connection, body } = await this.requireSigned(request);
      await this.charge(ctx, connection);
      const ids = await requireRead('status', statusSteps(body));
      await this.chargeRest(ctx, connection, ids.length);
      await answerStatus(this.app, ctx, connection, ids);
    });
  }

  /** `POST /catalogue`: items and stock since a cursor (docs/tills.md#the-catalogue). */
  catalogue(ctx: Context): Promise<void> {
    return this.serve(ctx, 'catalogue', async (request) => {
      const { connection, body } = await this.requireSigned(request);
      await this.charge(ctx, connection);
      requireScope(connection, 'stock:read');
      const asked = await requireRead('catalogue', catalogueSteps(body));
      answer(ctx, 200, await answerCatalogue(this.app, connection, asked));
    });
  }

  /** `GET /ping`. */
  ping(ctx: Context): Promise<void> {
    return this.serve(ctx, 'ping', async (request) => {
      await this.lookup.requireReady(); // 503 not_ready
      const row = await this.lookup.find(request.headers.key);
      request.sender = { proof: 'claim', row };
      const connection = requireConnection(row, () => undefined); // 401 unknown_key, revoked_key
      request.sender = { proof: 'key', connection };
      requireRate(ctx, await this.limits.chargePing(connection.id, clientAddress(ctx))); // 429
      answer(ctx, 200, {
        ok: true,
        connection: connection.name,
        mode: connection.mode,
        schema: SCHEMA_VERSION,
        server_time: Math.floor(Date.now() / 1000),
      } satisfies Ping);
    });
  }

  /** Runs the checks of a request, and answers the one that fails. */
  private async serve(
    ctx: Context,
    kind: TillRequest['kind'],
    checks: (request: TillRequest) => Promise<void>
  ): Promise<void> {
    const request: TillRequest = {
      ctx,
      kind,
      atMs: Date.now(),
      headers: signedHeaders(ctx.req),
      sender: { proof: 'not asked' },
    };
    try {
      await checks(request);
    } catch (error) {
      if (error instanceof Refusal) answerRefusal(ctx, await this.refused(request, error));
      else if (isMissingTable(error)) answerRefusal(ctx, notReady());
      else if (isInfrastructureFault(error)) {
        this.logFault('switchboard: a request of a till could not be served', error);
        answerRefusal(ctx, notReady());
      } else throw error;
    }
  }

  /** The checks up to the signature; the first ones of every signed request. */
  private async requireSigned(
    request: TillRequest
  ): Promise<{ connection: ConnectionRow; body: Buffer }> {
    const { ctx, headers, atMs } = request;
    await this.lookup.requireReady(); // 503 not_ready
    request.sender = { proof: 'none' };
    const body = requireBody(ctx); // 415 unsupported_encoding, 413 payload_too_large
    const row = await this.lookup.find(headers.key);
    request.sender = { proof: 'claim', row };
    const connection = requireSigner(row, headers, body); // 401 unknown_key, revoked_key
    const secret = requireSecret(this.app, connection); // 401 secret_unavailable
    const time = requireTime(headers, atMs, this.app.options.pos.timestampWindowSeconds); // 401 timestamp_…
    requireSignature(secret, time.timestamp, headers, body); // 401 signature_mismatch
    request.sender = { proof: 'signature', connection, body, record: null };
    this.lastSeen.seen(connection, time.skewSeconds, atMs);
    return { connection, body };
  }

  /** One, before anything of the body is read: 429 rate_limited. */
  private async charge(ctx: Context, { id }: ConnectionRow): Promise<void> {
    requireRate(ctx, await this.limits.chargeConnection(id));
  }

  /** What a body that was charged for as one counts for besides, now that it is read. */
  private async chargeRest(ctx: Context, { id }: ConnectionRow, parts: number): Promise<void> {
    const rest = costOf(parts) - 1;
    if (rest > 0) requireRate(ctx, await this.limits.chargeRest(id, rest));
  }
}

const makeChecks = (app: App): Checks => new Checks(app);

/** Made at boot, outside any request, so that its loops inherit no request's transaction. */
export const gateOf = (app: App): Checks => app.part(makeChecks);

export const tills: ControllerFactory = ({ strapi }) => {
  const app = appOf(strapi);
  return {
    ping: (ctx) => gateOf(app).ping(ctx),
    sale: (ctx) => gateOf(app).receive(ctx, 'sale'),
    refund: (ctx) => gateOf(app).receive(ctx, 'refund'),
    inventory: (ctx) => gateOf(app).receive(ctx, 'inventory'),
    batch: (ctx) => gateOf(app).batch(ctx),
    validate: (ctx) => gateOf(app).validate(ctx),
    status: (ctx) => gateOf(app).status(ctx),
    catalogue: (ctx) => gateOf(app).catalogue(ctx),
    closing: (ctx) => gateOf(app).closing(ctx),
  };
};
