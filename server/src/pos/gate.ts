import type { Core } from '@strapi/strapi';
import type { Context } from 'koa';
import type { Accepted, Ping } from '../../../shared/contracts/pos';
import { getOptions } from '../config';
import { createDetached } from '../database/connection';
import { digestOf } from '../stock/digest';
import { answer, answerRefusal, isMissingTable, notReady, Refusal } from './answers';
import { authenticate, requireConnection, signedHeaders } from './authentication';
import { type ConnectionLookup, createConnectionLookup } from './connection-lookup';
import { createIntake, type Intake } from './intake';
import { createRateLimits, type LimitVerdict, type RateLimits } from './rate-limits';
import { rawBodyOf } from './raw-body';
import { type RecordKind, SCHEMA_IDS, SCHEMA_VERSION, SCOPE_OF_KIND } from './rules/states';
import { readRecord } from './rules/validate';
import { createSightings, type Sightings } from './sightings';
import type { ConnectionRow } from './tables';

/** Everything a till's request passes through; one a process. */
export interface Gate {
  /** `POST /sale`, `/refund`, `/inventory`. */
  receive(ctx: Context, kind: RecordKind): Promise<void>;
  /** `GET /ping`. */
  ping(ctx: Context): Promise<void>;
}

interface Parts {
  lookup: ConnectionLookup;
  intake: Intake;
  limits: RateLimits;
  sightings: Sightings;
}

const tooMany = (verdict: LimitVerdict): Refusal =>
  new Refusal(
    'rate_limited',
    'Too many requests: wait as long as Retry-After says.',
    {},
    verdict.headers
  );

const readBody = (ctx: Context): Buffer => {
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

export const createGate = (strapi: Core.Strapi): Gate => {
  const options = getOptions(strapi).pos;
  const detached = createDetached();
  const parts: Parts = {
    lookup: createConnectionLookup(strapi, detached),
    intake: createIntake(strapi, detached),
    limits: createRateLimits(options),
    sightings: createSightings(strapi, detached),
  };

  /** A failed authentication is charged to its address; past the limit it is a 429, not a 401. */
  const charged = async (ctx: Context, refusal: Refusal): Promise<Refusal> => {
    const verdict = await parts.limits.chargeFailure(ctx.ip);
    return verdict.allowed ? refusal : tooMany(verdict);
  };

  const guarded = async (ctx: Context, work: () => Promise<void>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      if (error instanceof Refusal) answerRefusal(ctx, error);
      else if (isMissingTable(error)) answerRefusal(ctx, notReady());
      else throw error;
    }
  };

  const takeIn = async (
    ctx: Context,
    kind: RecordKind,
    connection: ConnectionRow,
    body: Buffer,
    receivedAtMs: number
  ): Promise<void> => {
    const scope = SCOPE_OF_KIND[kind];
    if (!(JSON.parse(connection.scopes) as string[]).includes(scope)) {
      throw new Refusal('insufficient_scope', `The connection lacks the scope ${scope}.`, {
        required_scope: scope,
      });
    }
    const invalid = (issue: { field: string; message: string }): Refusal =>
      new Refusal('schema_invalid', issue.message, {
        field: issue.field,
        schema: SCHEMA_IDS[kind],
      });
    const reading = readRecord(kind, body, { receivedAtMs });
    if (!reading.ok) throw invalid(reading.issue);
    const text = body.toString('utf8');
    const acceptance = await parts.intake({
      connection,
      record: reading.record,
      body: text,
      bodyDigest: digestOf(text),
      receivedAtMs,
    });
    switch (acceptance.outcome) {
      case 'invalid':
        throw invalid(acceptance.issue);
      case 'stale':
        throw new Refusal(
          'stale_count',
          'Every line is older than a count that was accepted before; do not send it again.',
          { stale: acceptance.stale }
        );
      case 'accepted': {
        const { eventId, stale } = acceptance;
        answer(ctx, 202, {
          ok: true,
          event_id: eventId,
          state: 'pending',
          duplicate: false,
          ...(stale.length > 0 && { stale }),
        } satisfies Accepted);
        return;
      }
      case 'duplicate': {
        const { eventId, state, mismatch, stale } = acceptance;
        answer(ctx, 200, {
          ok: true,
          event_id: eventId,
          state,
          duplicate: true,
          ...(mismatch && { payload_mismatch: true as const }),
          ...(stale.length > 0 && { stale }),
        } satisfies Accepted);
      }
    }
  };

  return {
    receive: (ctx, kind) =>
      guarded(ctx, async () => {
        const nowMs = Date.now();
        await parts.lookup.requireReady();
        const body = readBody(ctx);
        const headers = signedHeaders(ctx.req);
        const row = await parts.lookup.find(headers.key);
        let connection: ConnectionRow;
        let skewSeconds: number;
        try {
          const windowSeconds = options.timestampWindowSeconds;
          const checked = authenticate(strapi, row, headers, body, { nowMs, windowSeconds });
          ({ connection, skewSeconds } = checked);
        } catch (error) {
          if (!(error instanceof Refusal)) throw error;
          if (row && row.deleted_at === null) parts.sightings.failed(row, error.code, nowMs);
          throw await charged(ctx, error);
        }
        parts.sightings.seen(connection, skewSeconds, nowMs);
        try {
          const verdict = await parts.limits.chargeConnection(connection.id);
          for (const [name, value] of Object.entries(verdict.headers)) ctx.set(name, value);
          if (!verdict.allowed) throw tooMany(verdict);
          await takeIn(ctx, kind, connection, body, nowMs);
        } catch (error) {
          if (error instanceof Refusal) parts.sightings.failed(connection, error.code, nowMs);
          throw error;
        }
      }),

    ping: (ctx) =>
      guarded(ctx, async () => {
        await parts.lookup.requireReady();
        const { key } = signedHeaders(ctx.req);
        let connection: ConnectionRow;
        try {
          connection = requireConnection(await parts.lookup.find(key), () => undefined);
        } catch (error) {
          throw error instanceof Refusal ? await charged(ctx, error) : error;
        }
        const verdict = await parts.limits.chargePing(connection.id, ctx.ip);
        for (const [name, value] of Object.entries(verdict.headers)) ctx.set(name, value);
        if (!verdict.allowed) throw tooMany(verdict);
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
