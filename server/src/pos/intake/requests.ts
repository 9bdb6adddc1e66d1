import type { Core } from '@strapi/strapi';
import type { Context } from 'koa';
import type { Ping } from '../../../../shared/contracts/till-answers';
import type { BatchAnswer } from '../../../../shared/contracts/till-answers';
import { getOptions } from '../../config';
import { createDetached } from '../../database/connection';
import { createFaultLog } from '../../database/errors/fault-log';
import { isInfrastructureFault } from '../../database/errors/faults';
import { clientAddress } from '../../net/client-address';
import {
  answer,
  answerOfAcceptance,
  answerRefusal,
  isMissingTable,
  notReady,
  Refusal,
  schemaInvalid,
} from './answers';
import {
  requireConnection,
  requireSecret,
  requireSignature,
  requireSigner,
  requireTime,
  signedHeaders,
} from './authentication';
import { costOf, createBatchAnswers } from './batch';
import { answerCatalogue } from './catalogue';
import { createConnectionLookup } from './connection-lookup';
import { createIngestion } from './ingestion';
import { createLastSeenTracker } from './last-seen-tracker';
import { createRateLimits, type LimitVerdict } from './rate-limits';
import { previewOf } from './asking';
import { rawBodyOf } from './raw-body';
import { answerClosing } from './closing';
import {
  requireClosing,
  requireRecord,
  requireScope,
  requireSize,
  tooLarge,
} from './record-checks';
import { answerStatus } from './record-status';
import { createRefusedRequests, type Sender, type TillRequest, tooMany } from './refused-requests';
import type { SignedBody } from './refusals';
import { submissionOf } from './submission';
import { inTurns, type Steps } from '../../runtime/steps';
import { batchSteps, catalogueSteps, statusSteps, validationSteps } from '../rules/envelopes';
import { type AskingKind, type RecordKind, SCHEMA_VERSION } from '../rules/states';
import type { BodyIssue } from '../rules/strict-json';
import type { ConnectionRow } from '../tables';

/** Everything a till's request passes through; one a process. */
export interface Checks {
  /** `POST /sale`, `/refund`, `/inventory`. */
  receive(ctx: Context, kind: RecordKind): Promise<void>;
  /** `POST /closing`: a shift's sums, compared with the records (docs/tills.md#closing-a-shift). */
  closing(ctx: Context): Promise<void>;
  /** `GET /ping`. */
  ping(ctx: Context): Promise<void>;
  /** `POST /batch`: records, each answered by itself (docs/tills.md#batches). */
  batch(ctx: Context): Promise<void>;
  /** `POST /validate`: what a record would become (docs/tills.md#trying-a-record). */
  validate(ctx: Context): Promise<void>;
  /** `POST /status`: what became of records (docs/tills.md#what-became-of-a-record). */
  status(ctx: Context): Promise<void>;
  /** `POST /catalogue`: items and stock since a cursor (docs/tills.md#the-catalogue). */
  catalogue(ctx: Context): Promise<void>;
}

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

export const createChecks = (strapi: Core.Strapi): Checks => {
  const options = getOptions(strapi).pos;
  const detached = createDetached();
  const lookup = createConnectionLookup(strapi, detached);
  const ingest = createIngestion(strapi, detached);
  const limits = createRateLimits(options);
  const lastSeen = createLastSeenTracker(strapi, detached);
  const refused = createRefusedRequests(strapi, { detached, lookup, limits, lastSeen });
  const logFault = createFaultLog(strapi.log);
  const { maxBodyBytes } = options;
  const answerBatch = createBatchAnswers(strapi, { ingest, maxBodyBytes });

  /** Runs the checks of a request, and answers the one that fails. */
  const serve = async (
    ctx: Context,
    kind: TillRequest['kind'],
    checks: (request: TillRequest) => Promise<void>
  ): Promise<void> => {
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
      if (error instanceof Refusal) answerRefusal(ctx, await refused(request, error));
      else if (isMissingTable(error)) answerRefusal(ctx, notReady());
      else if (isInfrastructureFault(error)) {
        logFault('switchboard: a request of a till could not be served', error);
        answerRefusal(ctx, notReady());
      } else throw error;
    }
  };

  /** The checks up to the signature; the first ones of every signed request. */
  const requireSigned = async (
    request: TillRequest
  ): Promise<{ connection: ConnectionRow; body: Buffer }> => {
    const { ctx, headers, atMs } = request;
    await lookup.requireReady(); // 503 not_ready
    request.sender = { proof: 'none' };
    const body = requireBody(ctx); // 415 unsupported_encoding, 413 payload_too_large
    const row = await lookup.find(headers.key);
    request.sender = { proof: 'claim', row };
    const connection = requireSigner(row, headers, body); // 401 unknown_key, revoked_key
    const secret = requireSecret(strapi, connection); // 401 secret_unavailable
    const time = requireTime(headers, atMs, options.timestampWindowSeconds); // 401 timestamp_…
    requireSignature(secret, time.timestamp, headers, body); // 401 signature_mismatch
    request.sender = { proof: 'signature', connection, body, record: null };
    lastSeen.seen(connection, time.skewSeconds, atMs);
    return { connection, body };
  };

  /** One, before anything of the body is read: 429 rate_limited. */
  const charge = async (ctx: Context, { id }: ConnectionRow): Promise<void> =>
    requireRate(ctx, await limits.chargeConnection(id));

  /** What a body that was charged for as one counts for besides, now that it is read. */
  const chargeRest = async (ctx: Context, { id }: ConnectionRow, parts: number): Promise<void> => {
    const rest = costOf(parts) - 1;
    if (rest > 0) requireRate(ctx, await limits.chargeRest(id, rest));
  };

  return {
    // The order is a promise to tills (docs/tills.md#answers): the first that fails answers.
    receive: (ctx, kind) =>
      serve(ctx, kind, async (request) => {
        const { atMs } = request;
        const { connection, body } = await requireSigned(request);
        await charge(ctx, connection);
        requireScope(connection, kind); // 403 insufficient_scope
        const record = await requireRecord(kind, body, atMs); // 400 schema_invalid
        request.sender = { proof: 'signature', connection, body, record };
        const acceptance = await ingest(submissionOf(connection, record, body, atMs));
        // 200 duplicate, 409 stale_count, 202
        const { status, body: answered } = answerOfAcceptance(kind, acceptance);
        answer(ctx, status, answered);
      }),

    closing: (ctx) =>
      serve(ctx, 'closing', async (request) => {
        const { connection, body } = await requireSigned(request);
        await charge(ctx, connection);
        requireScope(connection, 'closing');
        const record = await requireClosing(body, request.atMs);
        request.sender = { proof: 'signature', connection, body, record };
        // 200 duplicate, 202
        const { status, body: answered } = await answerClosing(
          strapi,
          submissionOf(connection, record, body, request.atMs)
        );
        answer(ctx, status, answered);
      }),

    batch: (ctx) =>
      serve(ctx, 'batch', async (request) => {
        const { connection, body } = await requireSigned(request);
        await charge(ctx, connection);
        const entries = await requireRead('batch', batchSteps(body));
        await chargeRest(ctx, connection, entries.length);
        const signed = { connection, receivedAtMs: request.atMs };
        const results = await answerBatch(entries, signed, (kind, refusal, record) =>
          refused({ ...request, kind, sender: enclosedSender(connection, record) }, refusal)
        );
        answer(ctx, 200, { ok: true, results } satisfies BatchAnswer);
      }),

    validate: (ctx) =>
      serve(ctx, 'validate', async (request) => {
        const { connection, body: envelope } = await requireSigned(request);
        await charge(ctx, connection);
        const { kind, body } = await requireRead('validate', validationSteps(envelope));
        request.sender = { proof: 'signature', connection, body, record: null };
        requireSize(body, maxBodyBytes);
        requireScope(connection, kind);
        const record = await requireRecord(kind, body, request.atMs);
        request.sender = { proof: 'signature', connection, body, record };
        answer(
          ctx,
          200,
          await previewOf(strapi, submissionOf(connection, record, body, request.atMs))
        );
      }),

    status: (ctx) =>
      serve(ctx, 'status', async (request) => {
        const { connection, body } = await requireSigned(request);
        await charge(ctx, connection);
        const ids = await requireRead('status', statusSteps(body));
        await chargeRest(ctx, connection, ids.length);
        await answerStatus(strapi, ctx, connection, ids);
      }),

    catalogue: (ctx) =>
      serve(ctx, 'catalogue', async (request) => {
        const { connection, body } = await requireSigned(request);
        await charge(ctx, connection);
        requireScope(connection, 'stock:read');
        const asked = await requireRead('catalogue', catalogueSteps(body));
        answer(ctx, 200, await answerCatalogue(strapi, connection, asked));
      }),

    ping: (ctx) =>
      serve(ctx, 'ping', async (request) => {
        await lookup.requireReady(); // 503 not_ready
        const row = await lookup.find(request.headers.key);
        request.sender = { proof: 'claim', row };
        const connection = requireConnection(row, () => undefined); // 401 unknown_key, revoked_key
        request.sender = { proof: 'key', connection };
        requireRate(ctx, await limits.chargePing(connection.id, clientAddress(ctx))); // 429
        answer(ctx, 200, {
          ok: true,
          connection: connection.name,
          mode: connection.mode,
          schema: SCHEMA_VERSION,
          server_time: Math.floor(Date.now() / 1000),
        } satisfies Ping);
      }),
  };
};
