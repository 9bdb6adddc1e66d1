import type { Core } from '@strapi/strapi';
import type { Context } from 'koa';
import type { Detached } from '../../database/connection';
import { clientAddress } from '../../net/client-address';
import { Refusal } from './answers';
import type { SignedHeaders } from './authentication';
import type { ConnectionLookup } from './connection-lookup';
import type { LastSeenTracker } from './last-seen-tracker';
import type { LimitVerdict, RateLimits } from './rate-limits';
import { getRefusals, type RefusedRequest, type SignedBody } from './refusals';
import type { ConnectionRow } from '../tables';

/** How much a request has proved of who sent it, at the check that it has come to. */
export type Sender =
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

/** A request on its way through the checks. */
export interface TillRequest {
  readonly ctx: Context;
  readonly kind: RefusedRequest['kind'];
  /** When it came, epoch milliseconds. */
  readonly atMs: number;
  readonly headers: SignedHeaders;
  /** Kept up by the checks. */
  sender: Sender;
}

export const tooMany = ({ headers }: LimitVerdict): Refusal =>
  new Refusal('rate_limited', 'Too many requests: wait as long as Retry-After says.', {}, headers);

interface Parts {
  detached: Detached;
  lookup: ConnectionLookup;
  limits: RateLimits;
  lastSeen: LastSeenTracker;
}

/**
 * What becomes of a refusal besides its answer: it is charged where somebody might be guessing, and
 * kept for the owner where it was a known connection's key that was refused.
 * @returns the refusal to answer
 */
export const createRefusedRequests = (
  strapi: Core.Strapi,
  { detached, lookup, limits, lastSeen }: Parts
): ((request: TillRequest, refusal: Refusal) => Promise<Refusal>) => {
  const refusals = getRefusals(strapi);

  const keep = (
    row: ConnectionRow | null,
    { kind, atMs }: TillRequest,
    refusal: Refusal,
    signed: SignedBody | null
  ): void => {
    if (!row || row.deleted_at !== null) return;
    refusals.note(Number(row.id), { kind, atMs, refusal, signed });
  };

  /** Whose it was is found out beside the answer. */
  const keepUnread = (request: TillRequest, refusal: Refusal): void => {
    detached(() =>
      lookup.find(request.headers.key).then(
        (row) => keep(row, request, refusal, null),
        () => undefined
      )
    );
  };

  /** A failed authentication is charged to its address; past the limit it is a 429, not a 401. */
  const charged = async ({ ctx }: TillRequest, refusal: Refusal): Promise<Refusal> => {
    const verdict = await limits.chargeFailure(clientAddress(ctx));
    return verdict.allowed ? refusal : tooMany(verdict);
  };

  return async (request, refusal) => {
    const { sender, kind, atMs } = request;
    switch (sender.proof) {
      case 'not asked':
        return refusal;
      case 'none':
        keepUnread(request, refusal);
        return refusal;
      case 'claim': {
        const { row } = sender;
        const known = row !== null && row.deleted_at === null;
        if (known && kind !== 'ping') lastSeen.failed(row, refusal.code, atMs);
        const answered = await charged(request, refusal);
        keep(row, request, answered, null);
        return answered;
      }
      case 'key':
        keep(sender.connection, request, refusal, null);
        return refusal;
      case 'signature':
        lastSeen.failed(sender.connection, refusal.code, atMs);
        keep(sender.connection, request, refusal, sender);
        return refusal;
    }
  };
};
