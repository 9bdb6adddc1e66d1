import type { IncomingMessage } from 'node:http';
import type { Context, Next } from 'koa';

/** The bytes that all bodies being read at one place may hold together. */
export const createBodyBudget = (limit: number) => ({ limit, held: 0 });

export type BoundedBody =
  /** Keep its bytes in the budget until `release`: they are in memory as long as they are worked on. */
  | { kind: 'bytes'; bytes: Buffer; release(): void }
  | { kind: 'too_large' }
  /** The others that are being read leave no room for it. */
  | { kind: 'busy' }
  /** It did not end in time. */
  | { kind: 'slow' }
  /** The sender went away in the middle. */
  | { kind: 'broken' };

export interface BodyLimits {
  bytes: number;
  /** Else as long as the server waits for a request. */
  deadlineMs?: number;
  budget?: ReturnType<typeof createBodyBudget>;
  /** Bytes discarded past the limit, so that a sender can still read the answer; beyond, the connection is closed. */
  discard?: number;
}

/** Reads the raw body of an unauthenticated request; `Content-Length` is believed only if too large. */
export const readBoundedBody = (
  request: IncomingMessage,
  { bytes: limit, deadlineMs, budget, discard }: BodyLimits
): Promise<BoundedBody> =>
  new Promise((resolve) => {
    if (request.destroyed) {
      resolve({ kind: 'broken' });
      return;
    }
    if (discard === undefined && Number(request.headers['content-length'] ?? 0) > limit) {
      resolve({ kind: 'too_large' });
      return;
    }
    let chunks: Buffer[] = [];
    let size = 0;
    const letGo = (): void => {
      if (budget) budget.held -= size;
      size = 0;
      chunks = [];
    };
    const finish = (result: BoundedBody): void => {
      clearTimeout(timer);
      request.off('data', onData).off('end', onEnd).off('error', onBroken).off('close', onBroken);
      if (result.kind !== 'bytes') letGo();
      resolve(result);
    };
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      if (budget) budget.held += chunk.length;
      if (size > limit) onTooMuch();
      else if (budget && budget.held > budget.limit) finish({ kind: 'busy' });
      else chunks.push(chunk);
    };
    const onTooMuch = (): void => {
      chunks = [];
      if (size <= limit + (discard ?? 0)) return;
      if (discard !== undefined) request.destroy();
      finish({ kind: 'too_large' });
    };
    const onEnd = (): void => {
      if (size > limit) {
        finish({ kind: 'too_large' });
        return;
      }
      const bytes = Buffer.concat(chunks);
      chunks = [];
      finish({ kind: 'bytes', bytes, release: letGo });
    };
    const onBroken = (): void => finish({ kind: 'broken' });
    const timer =
      deadlineMs === undefined ? undefined : setTimeout(() => finish({ kind: 'slow' }), deadlineMs);
    timer?.unref();
    request.on('data', onData).on('end', onEnd).on('error', onBroken).on('close', onBroken);
  });

/** A content type that no parser of a site takes for its own. */
const UNPARSED_TYPE = 'application/vnd.switchboard.raw';

const types = new WeakMap<IncomingMessage, string>();

/** Hides the body from later parsers: the host's keeps no raw bytes and throws if the body was read already. */
export const leaveUnparsed = (request: IncomingMessage): void => {
  types.set(request, request.headers['content-type'] ?? '');
  request.headers['content-type'] = UNPARSED_TYPE;
};

/** The content type that a request came with which was left unparsed. */
export const typeOfUnparsed = (request: IncomingMessage): string => types.get(request) ?? '';

/** A path without trailing slashes. No regular expression: `\/+$` is quadratic on many slashes before other text. */
export const withoutTrailingSlashes = (path: string): string => {
  let length = path.length;
  while (path.charCodeAt(length - 1) === 0x2f) length -= 1;
  return path.slice(0, length);
};

/** Leaves posts to some paths, in lower case and without slashes at their end, to their routes. */
export const leavingPostsUnparsed =
  (isPath: (path: string) => boolean) =>
  async (ctx: Context, next: Next): Promise<void> => {
    if (ctx.method === 'POST' && isPath(withoutTrailingSlashes(ctx.path.toLowerCase()))) {
      leaveUnparsed(ctx.req);
    }
    await next();
  };
