import type { Context } from 'koa';
import type { BatchAnswer, BatchResult, Ping } from '../../../../shared/contracts/till-answers';
import { FailedAttempts } from '../../access/failed-attempts';
import { type App, appOf } from '../../app';
import { createFaultLog, isInfrastructureFault } from '../../database/retry';
import type { ControllerFactory } from '../../http/guarded-route';
import { clientAddress } from '../../net/client-address';
import { inTurns, type Steps, TimeSlice } from '../../runtime/event-loop';
import { errorText } from '../../runtime/text';
import { answerClosing } from '../closings';
import {
  batchSteps,
  catalogueSteps,
  type Enclosed,
  statusSteps,
  validationSteps,
} from '../rules/envelopes';
import {
  ASKING_KINDS,
  type AskingKind,
  EVENT_KINDS,
  type EventKind,
  LIMITS,
  nodesWithin,
  type RecordKind,
  SCHEMA_VERSION,
} from '../rules/records';
import type { Read } from '../rules/strict-json';
import { type RecordOf, recordSteps } from '../rules/validate';
import type { ConnectionRow } from '../tables';
import { createIngestion, type Ingestion, type Submission, submissionOf } from './accept';
import { answerCatalogue, previewOf, statusText } from './asking';
import {
  authenticate,
  ConnectionLookup,
  LastSeenTracker,
  Limit,
  type LimitVerdict,
  requireConnection,
  type SignedHeaders,
  signedHeaders,
  verdictOf,
} from './authentication';
import { getRefusals, type RefusedRequest, type SignedBody } from './refusals';
import {
  answerOfAcceptance,
  answerOfRefusal,
  hostFailure,
  isMissingTable,
  notReady,
  Refusal,
  requireBody,
  requireScope,
  requireSize,
  schemaInvalid,
} from './wire';

/** How much a request has proved of its sender, at the check that it has come to. */
type Sender =
  /** The service may not be ready. */
  | { proof: 'not asked' }
  /** Nobody was looked up yet. */
  | { proof: 'none' }
  /** Its key was looked up, and it is being authenticated; null: nobody has that key. */
  | { proof: 'claim'; row: ConnectionRow | null }
  /** A ping, which signs nothing: its key is good. */
  | { proof: 'key'; connection: ConnectionRow }
  /** Authenticated; `record` as soon as the body was read as one. */
  | ({ proof: 'signature'; connection: ConnectionRow } & SignedBody);

interface TillRequest {
  readonly ctx: Context;
  readonly kind: RefusedRequest['kind'];
  readonly atMs: number;
  readonly headers: SignedHeaders;
  /** Kept up by the checks. */
  sender: Sender;
}

interface Signed {
  connection: ConnectionRow;
  body: Buffer;
}

const NOTHING = Buffer.alloc(0);

interface Answer {
  status: number;
  body: unknown;
}

const resultOf = <Body extends object>({ status, body }: { status: number; body: Body }) => ({
  status,
  ...body,
});

const tooMany = ({ headers }: LimitVerdict): Refusal =>
  new Refusal('rate_limited', 'Too many requests: wait as long as Retry-After says.', {}, headers);

/** Says in the answer what is left, whatever the answer will be. */
const requireRate = (ctx: Context, verdict: LimitVerdict): void => {
  ctx.set(verdict.headers);
  if (!verdict.allowed) throw tooMany(verdict);
};

/** Reads a body in turns with other requests: what it was read as. */
const requireRead = async <T>(kind: EventKind | AskingKind, steps: Steps<Read<T>>): Promise<T> => {
  const reading = await inTurns(steps);
  if (!reading.ok) throw schemaInvalid(kind, reading.issue);
  return reading.value;
};

/** All checks of a till's request, in the order on which tills rely: the first failure is the answer. */
export class Checks {
  private readonly lookup: ConnectionLookup;
  private readonly limits: { connection: Limit; ping: Limit; failure: FailedAttempts };
  private readonly lastSeen: LastSeenTracker;
  private readonly ingest: Ingestion;
  private readonly logFault: ReturnType<typeof createFaultLog>;

  constructor(private readonly app: App) {
    const { ratePerMinute, failedAuthPerMinute } = app.options.pos;
    this.lookup = new ConnectionLookup(app);
    this.limits = {
      connection: new Limit('connection', ratePerMinute),
      ping: new Limit('ping', ratePerMinute),
      failure: new FailedAttempts(failedAuthPerMinute),
    };
    this.lastSeen = new LastSeenTracker(app);
    this.ingest = createIngestion(app);
    this.logFault = createFaultLog(app.log);
  }

  /** `POST /sale`, `/refund`, `/inventory` and `/closing`, a shift's sums (docs/tills.md#closing-a-shift). */
  receive(ctx: Context, kind: EventKind): Promise<void> {
    return this.serve(ctx, kind, async (request) => {
      const signed = await this.requireSigned(request);
      // 200 duplicate, 202; of a record 409 stale_count, too
      if (kind === 'closing') {
        return answerClosing(this.app, await this.requireSubmission(request, signed, kind));
      }
      const submission = await this.requireSubmission(request, signed, kind);
      return answerOfAcceptance(kind, await this.ingest(submission));
    });
  }

  /** `POST /batch`: each record answered as by its route, applied in order; docs/tills.md#offline-tills-and-batches */
  batch(ctx: Context): Promise<void> {
    return this.serve(ctx, 'batch', async (request) => {
      const signed = await this.requireSigned(request);
      const entries = await requireRead('batch', batchSteps(signed.body));
      await this.chargeRest(ctx, signed, entries.length);
      const judged: (() => Promise<BatchResult>)[] = [];
      const slice = new TimeSlice();
      for (const entry of entries) {
        if (slice.isOver()) await slice.next();
        judged.push(await this.judgeEntry(request, signed, entry));
      }
      const accepted = await Promise.allSettled(judged.map((accept) => accept()));
      const results = accepted.map((result) => {
        // Accepted records stay accepted.
        if (result.status === 'rejected') throw result.reason;
        return result.value;
      });
      return { status: 200, body: { ok: true, results } satisfies BatchAnswer };
    });
  }

  /** `POST /validate`: what a record would become (docs/tills.md#trying-a-record). */
  validate(ctx: Context): Promise<void> {
    return this.serve(ctx, 'validate', async (request) => {
      const { connection, body: envelope } = await this.requireSigned(request);
      const { kind, body } = await requireRead('validate', validationSteps(envelope));
      request.sender = { proof: 'signature', connection, body, record: null };
      requireSize(body, this.app.options.pos.maxBodyBytes);
      const submission = await this.requireSubmission(request, { connection, body }, kind);
      return { status: 200, body: await previewOf(this.app, submission) };
    });
  }

  /** `POST /status`: what became of records (docs/tills.md#status-of-a-record). */
  status(ctx: Context): Promise<void> {
    return this.serve(ctx, 'status', async (request) => {
      const signed = await this.requireSigned(request);
      const ids = await requireRead('status', statusSteps(signed.body));
      await this.chargeRest(ctx, signed, ids.length);
      const body = await statusText(this.app, signed.connection, ids);
      ctx.type = 'application/json';
      return { status: 200, body };
    });
  }

  /** `POST /catalogue`: items and stock since a cursor (docs/tills.md#the-catalogue). */
  catalogue(ctx: Context): Promise<void> {
    return this.serve(ctx, 'catalogue', async (request) => {
      const { connection, body } = await this.requireSigned(request);
      requireScope(connection, 'stock:read');
      const query = await requireRead('catalogue', catalogueSteps(body));
      return { status: 200, body: await answerCatalogue(this.app, connection, query) };
    });
  }

  ping(ctx: Context): Promise<void> {
    return this.serve(ctx, 'ping', async (request) => {
      await this.lookup.requireReady(); // 503 not_ready
      const row = await this.lookup.find(request.headers.key);
      request.sender = { proof: 'claim', row };
      const connection = requireConnection(row, null); // 401 unknown_key, revoked_key
      request.sender = { proof: 'key', connection };
      // To its key and address together: nobody burns it for somebody else.
      const spender = `${connection.id}/${clientAddress(ctx).client}`;
      requireRate(ctx, await this.limits.ping.one(spender)); // 429 rate_limited
      const body = {
        ok: true,
        connection: connection.name,
        mode: connection.mode,
        schema: SCHEMA_VERSION,
        server_time: Math.floor(Date.now() / 1000),
      } satisfies Ping;
      return { status: 200, body };
    });
  }

  /** Runs the checks of a request, and answers the one that fails. */
  private async serve(
    ctx: Context,
    kind: TillRequest['kind'],
    checks: (request: TillRequest) => Promise<Answer>
  ): Promise<void> {
    const headers = signedHeaders(ctx.req);
    const request: TillRequest = {
      ctx,
      kind,
      headers,
      atMs: Date.now(),
      sender: { proof: 'not asked' },
    };
    let answer: Answer;
    try {
      answer = await checks(request);
    } catch (error) {
      const isAway = isInfrastructureFault(error);
      if (!(error instanceof Refusal || isAway || isMissingTable(error))) throw error;
      if (isAway) this.logFault('switchboard: a request of a till could not be served', error);
      const refusal = error instanceof Refusal ? await this.refused(request, error) : notReady();
      ctx.set(refusal.headers);
      answer = answerOfRefusal(refusal);
    }
    ctx.status = answer.status;
    ctx.body = answer.body;
  }

  /** The checks up to the rate, before anything of the body is read; the first ones of every signed request. */
  private async requireSigned(request: TillRequest): Promise<Signed> {
    const { ctx, headers, atMs } = request;
    await this.lookup.requireReady(); // 503 not_ready
    request.sender = { proof: 'none' };
    const body = requireBody(ctx.req); // 415 unsupported_encoding, 413 payload_too_large
    const row = await this.lookup.find(headers.key);
    request.sender = { proof: 'claim', row };
    // 401: unknown_key, revoked_key, secret_unavailable, timestamp_outside_window, signature_mismatch
    const { connection, skewSeconds } = authenticate(this.app, row, headers, { body, atMs });
    request.sender = { proof: 'signature', connection, body, record: null };
    const { id } = connection;
    this.lastSeen.note(id, { last_seen_at: atMs, clock_skew_seconds: skewSeconds }, atMs);
    // Only after the signature was verified: a key by itself must not use up the rate.
    requireRate(ctx, await this.limits.connection.one(String(id))); // 429 rate_limited
    return { connection, body };
  }

  /** Checks a record. Parsing yields to other requests, so the largest body blocks none of them. */
  private async requireSubmission<K extends EventKind>(
    request: TillRequest,
    { connection, body }: Signed,
    kind: K
  ): Promise<Submission<RecordOf<K>>> {
    const { atMs } = request;
    requireScope(connection, `${kind}:write`); // 403 insufficient_scope
    // Records of a site that takes larger bodies may have more values.
    const nodes = nodesWithin(Math.max(body.length, LIMITS.bodyBytes));
    const steps = recordSteps(kind, body, atMs, nodes);
    const record = await requireRead(kind, steps); // 400 schema_invalid
    request.sender = { proof: 'signature', connection, body, record };
    return submissionOf(connection, record, body, atMs);
  }

  /** Charges the rest for a body that was charged as one record, now that it is read. */
  private async chargeRest(ctx: Context, { connection }: Signed, parts: number): Promise<void> {
    const rest = Math.ceil(parts / LIMITS.recordsACharge) - 1;
    if (rest > 0) requireRate(ctx, await this.limits.connection.rest(String(connection.id), rest));
  }

  /** @returns what accepts a record of a batch, or answers what is wrong with the entry */
  private async judgeEntry(ofBatch: TillRequest, { connection }: Signed, entry: Read<Enclosed>) {
    const { kind, body } = entry.ok ? entry.value : { kind: 'batch' as const, body: NOTHING };
    const sender: Sender = { proof: 'signature', connection, body, record: null };
    const request: TillRequest = { ...ofBatch, kind, sender };
    try {
      if (!entry.ok) throw schemaInvalid('batch', entry.issue);
      const own = entry.value.kind;
      requireSize(body, this.app.options.pos.maxBodyBytes); // 413 payload_too_large
      const submission = await this.requireSubmission(request, { connection, body }, own);
      return () => this.acceptEntry(own, request, submission);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const result = resultOf(answerOfRefusal(await this.refused(request, error)));
      return async () => result;
    }
  }

  /** 200 duplicate, 409 stale_count, 202; a record that cannot be stored fails only itself. */
  private async acceptEntry(kind: RecordKind, request: TillRequest, submission: Submission) {
    try {
      return resultOf(answerOfAcceptance(kind, await this.ingest(submission)));
    } catch (error) {
      if (error instanceof Refusal) {
        return resultOf(answerOfRefusal(await this.refused(request, error)));
      }
      // The database is away for all of them: the whole is answered 503 and may be sent again.
      if (isMissingTable(error) || isInfrastructureFault(error)) throw error;
      this.app.log.error(`switchboard: a record of a batch was not accepted: ${errorText(error)}`);
      return { status: 500, ...hostFailure(500) };
    }
  }

  private tooManyFailures(seconds: number): Refusal {
    const { failedAuthPerMinute } = this.app.options.pos;
    const limit = { msBeforeNext: seconds * 1000, remainingPoints: 0 };
    return tooMany(verdictOf('authentication', failedAuthPerMinute, limit, false));
  }

  /** Charges a refusal if it may be guessing, stores it for the owner of a known connection, and returns the answer. */
  private async refused(request: TillRequest, refusal: Refusal): Promise<Refusal> {
    const { ctx, sender, kind, atMs } = request;
    const keep = (
      row: ConnectionRow | null,
      answered = refusal,
      signed: SignedBody | null = null
    ): void => {
      if (!row || row.deleted_at !== null) return;
      getRefusals(this.app).note(Number(row.id), { kind, atMs, refusal: answered, signed });
    };
    const noteError = ({ id }: ConnectionRow): void =>
      this.lastSeen.note(id, { last_error: refusal.code, last_error_at: atMs }, atMs);
    switch (sender.proof) {
      case 'not asked':
        return refusal;
      case 'none':
        // The sender is looked up while the answer goes out.
        this.app.detached(() =>
          this.lookup.find(request.headers.key).then(
            (row) => keep(row),
            () => undefined
          )
        );
        return refusal;
      case 'claim': {
        const { row } = sender;
        if (row && row.deleted_at === null && kind !== 'ping') noteError(row);
        // A failed authentication is charged to its address; past the limit it is a 429, not a 401.
        const seconds = await this.limits.failure.charge(clientAddress(ctx));
        const answered = seconds === null ? refusal : this.tooManyFailures(seconds);
        keep(row, answered);
        return answered;
      }
      case 'key':
        keep(sender.connection);
        return refusal;
      case 'signature':
        noteError(sender.connection);
        keep(sender.connection, refusal, sender);
        return refusal;
    }
  }
}

export const tills: ControllerFactory = ({ strapi }) => {
  const checks = new Checks(appOf(strapi));
  return {
    ...Object.fromEntries(
      EVENT_KINDS.map((kind) => [kind, (ctx: Context) => checks.receive(ctx, kind)])
    ),
    ...Object.fromEntries(
      (['ping', ...ASKING_KINDS] as const).map((kind) => [
        kind,
        (ctx: Context) => checks[kind](ctx),
      ])
    ),
  };
};
