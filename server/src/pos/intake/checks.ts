import type { Core } from '@strapi/strapi';
import type { Context } from 'koa';
import type { Ping } from '../../../../shared/contracts/pos';
import { getOptions } from '../../config';
import { createDetached } from '../../database/connection';
import { createFaultLog } from '../../database/errors/fault-log';
import { isInfrastructureFault } from '../../database/errors/faults';
import { clientAddress } from '../../net/client-address';
import {
  answer,
  answerAcceptance,
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
import { createConnectionLookup } from './connection-lookup';
import { createIngestion } from './ingestion';
import { createLastSeenTracker } from './last-seen-tracker';
import { createRateLimits, type LimitVerdict } from './rate-limits';
import { rawBodyOf } from './raw-body';
import { createRefusedRequests, type TillRequest, tooMany } from './refused-requests';
import { submissionOf } from './submission';
import type { PosRecord } from '../rules/records';
import { type RecordKind, SCHEMA_VERSION, SCOPE_OF_KIND } from '../rules/states';
import { readRecord } from '../rules/validate';
import type { ConnectionRow } from '../tables';

/** Everything a till's request passes through; one a process. */
export interface Checks {
  /** `POST /sale`, `/refund`, `/inventory`. */
  receive(ctx: Context, kind: RecordKind): Promise<void>;
  /** `GET /ping`. */
  ping(ctx: Context): Promise<void>;
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
      throw new Refusal('payload_too_large', 'The body is larger than this service takes.');
    case 'broken':
      throw new Refusal('schema_invalid', 'body must arrive whole');
  }
};

/** Says in the answer what is left, whatever the answer will be. */
const requireRate = (ctx: Context, verdict: LimitVerdict): void => {
  for (const [name, value] of Object.entries(verdict.headers)) ctx.set(name, value);
  if (!verdict.allowed) throw tooMany(verdict);
};

const requireScope = (connection: ConnectionRow, kind: RecordKind): void => {
  const scope = SCOPE_OF_KIND[kind];
  if ((JSON.parse(connection.scopes) as string[]).includes(scope)) return;
  throw new Refusal('insufficient_scope', `The connection lacks the scope ${scope}.`, {
    required_scope: scope,
  });
};

const requireRecord = (kind: RecordKind, body: Buffer, receivedAtMs: number): PosRecord => {
  const reading = readRecord(kind, body, { receivedAtMs });
  if (!reading.ok) throw schemaInvalid(kind, reading.issue);
  return reading.record;
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

  return {
    // The order is a promise to tills (docs/tills.md#answers): the first that fails answers.
    receive: (ctx, kind) =>
      serve(ctx, kind, async (request) => {
        const { headers, atMs } = request;
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
        requireRate(ctx, await limits.chargeConnection(connection.id)); // 429 rate_limited
        requireScope(connection, kind); // 403 insufficient_scope
        const record = requireRecord(kind, body, atMs); // 400 schema_invalid
        request.sender = { proof: 'signature', connection, body, record };
        const acceptance = await ingest(submissionOf(connection, record, body, atMs));
        answerAcceptance(ctx, kind, acceptance); // 200 duplicate, 409 stale_count, 202
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
