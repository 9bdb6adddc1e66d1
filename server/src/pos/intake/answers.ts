import type { Context } from 'koa';
import type { Accepted } from '../../../../shared/contracts/till-answers';
import { inTurns } from '../../runtime/event-loop';
import {
  ERROR_STATUS,
  type ErrorCode,
  type EventKind,
  LIMITS,
  nodesWithin,
  SCHEMA_IDS,
  type Scope,
  SCOPE_OF_KIND,
} from '../rules/records';
import type { BodyIssue } from '../rules/strict-json';
import { type RecordOf, recordSteps } from '../rules/validate';
import type { ConnectionRow } from '../tables';
import type { Acceptance } from './accept';

/** A refusal on its way to the till: `{ ok: false, code, message, … }` (docs/contract-pos.md#answers). */
export class Refusal extends Error {
  constructor(
    readonly code: ErrorCode,
    message: string,
    readonly details: Readonly<Record<string, unknown>> = {},
    readonly headers: Readonly<Record<string, string>> = {}
  ) {
    super(message);
  }
}

const NOT_READY_RETRY_SECONDS = '5';

export const notReady = (): Refusal =>
  new Refusal(
    'not_ready',
    'The service is not ready: its database cannot be used now. Try again later.',
    {},
    { 'Retry-After': NOT_READY_RETRY_SECONDS }
  );

export const schemaInvalid = (
  kind: keyof typeof SCHEMA_IDS,
  { field, message }: BodyIssue
): Refusal => new Refusal('schema_invalid', message, { field, schema: SCHEMA_IDS[kind] });

export const answer = (ctx: Context, status: number, body: unknown): void => {
  ctx.status = status;
  ctx.body = body;
};

/** The body of a refusal's answer. */
export const bodyOfRefusal = ({ code, message, details }: Refusal) => ({
  ok: false as const,
  code,
  message,
  ...details,
});

export const answerRefusal = (ctx: Context, refusal: Refusal): void => {
  for (const [name, value] of Object.entries(refusal.headers)) ctx.set(name, value);
  answer(ctx, ERROR_STATUS[refusal.code], bodyOfRefusal(refusal));
};

/**
 * What a till is answered whose record was taken.
 * @throws Refusal where the record was not accepted
 */
export const answerOfAcceptance = (
  kind: EventKind,
  acceptance: Acceptance
): { status: 200 | 202; body: Accepted } => {
  switch (acceptance.outcome) {
    case 'invalid':
      throw schemaInvalid(kind, acceptance.issue);
    case 'stale':
      throw new Refusal(
        'stale_count',
        'Every line is older than a count that was accepted before; do not send it again.',
        { stale: acceptance.stale }
      );
    case 'accepted': {
      const { eventId, stale } = acceptance;
      const body: Accepted = {
        ok: true,
        event_id: eventId,
        state: 'pending',
        duplicate: false,
        ...(stale.length > 0 && { stale }),
      };
      return { status: 202, body };
    }
    case 'duplicate': {
      const { eventId, state, mismatch, mode, stale } = acceptance;
      const body: Accepted = {
        ok: true,
        event_id: eventId,
        state,
        duplicate: true,
        ...(mismatch && { payload_mismatch: true as const }),
        ...(mode === 'test' && { mode }),
        ...(stale.length > 0 && { stale }),
      };
      return { status: 200, body };
    }
  }
};

/** Codes of answers that the host gives in the namespace: unknown paths, its own limits, faults. */
const HOST_CODES: Readonly<Record<number, { code: string; message: string }>> = {
  400: { code: 'bad_request', message: 'The request cannot be read.' },
  404: { code: 'not_found', message: 'There is no such route.' },
  405: { code: 'method_not_allowed', message: 'The route does not know this method.' },
  413: { code: 'payload_too_large', message: 'The body is too large.' },
  429: { code: 'rate_limited', message: 'Too many requests.' },
  503: { code: 'unavailable', message: 'The service is not available now. Try again later.' },
};

const INTERNAL = { code: 'internal_error', message: 'Something went wrong here. Try again later.' };

export const hostFailure = (status: number): { ok: false; code: string; message: string } => ({
  ok: false,
  ...(HOST_CODES[status] ?? (status >= 500 ? INTERNAL : { code: 'refused', message: 'Refused.' })),
});

const MISSING_TABLE = /no such table|does(?:n't| not) exist/i;

/** Whether a statement failed because a table of ours is not there. */
export const isMissingTable = (error: unknown): boolean => {
  const { code, errno, message } = (error ?? {}) as {
    code?: unknown;
    errno?: unknown;
    message?: unknown;
  };
  if (code === '42P01' || code === 'ER_NO_SUCH_TABLE' || errno === 1146) return true;
  return code === 'SQLITE_ERROR' && MISSING_TABLE.test(String(message));
};

/** The checks of what a record is, wherever it stands. Each throws its Refusal. */

export const tooLarge = (): Refusal =>
  new Refusal('payload_too_large', 'The body is larger than this service takes.');

export const requireSize = (body: Buffer, maxBytes: number): void => {
  if (body.length > maxBytes) throw tooLarge();
};

export const hasScope = ({ scopes }: Pick<ConnectionRow, 'scopes'>, scope: Scope): boolean =>
  (JSON.parse(scopes) as string[]).includes(scope);

/** @param needed  a scope, or a kind of record for the scope that it needs */
export const requireScope = (connection: ConnectionRow, needed: EventKind | Scope): void => {
  const scope = needed in SCOPE_OF_KIND ? SCOPE_OF_KIND[needed as EventKind] : (needed as Scope);
  if (hasScope(connection, scope)) return;
  throw new Refusal('insufficient_scope', `The connection lacks the scope ${scope}.`, {
    required_scope: scope,
  });
};

/** Records of a site that takes larger bodies may have more values. */
const nodesOf = (body: Buffer): number => nodesWithin(Math.max(body.length, LIMITS.bodyBytes));

/** Reads in turns with other requests: whoever sends the largest body there is keeps nobody out. */
export const requireRecord = async <K extends EventKind>(
  kind: K,
  body: Buffer,
  receivedAtMs: number
): Promise<RecordOf<K>> => {
  const reading = await inTurns(recordSteps(kind, body, { receivedAtMs }, nodesOf(body)));
  if (!reading.ok) throw schemaInvalid(kind, reading.issue);
  return reading.record;
};
