import type { IncomingMessage } from 'node:http';
import type { Context, Next } from 'koa';
import { leaveUnparsed, readBoundedBody, withoutTrailingSlashes } from '../../http/bounded-body';
import { hostFailure } from './answers';
import { ASKING_KINDS, LIMITS, RECORD_KINDS } from '../rules/records';
import type { App } from '../../app';

/** What a request's body turned out to be. */
export type RawBody =
  | { kind: 'bytes'; bytes: Buffer }
  | { kind: 'encoded'; encoding: string }
  | { kind: 'too_large' }
  /** The sender went away in the middle. */
  | { kind: 'broken' };

/** A till that is still sending gets to read the answer; past this the connection is closed on it. */
const DISCARD_BYTES = 4 * 1024 * 1024;

const NAMESPACE = 'service-pos/v1';

const bodies = new WeakMap<IncomingMessage, RawBody>();

/** The bytes of a request in the namespace, exactly as they came. */
export const rawBodyOf = (request: IncomingMessage): RawBody =>
  bodies.get(request) ?? { kind: 'bytes', bytes: Buffer.alloc(0) };

const isEncoded = (encoding: string | undefined): encoding is string =>
  encoding !== undefined && !['', 'identity'].includes(encoding.trim().toLowerCase());

const read = async (request: IncomingMessage, limit: number): Promise<RawBody> => {
  const body = await readBoundedBody(request, { bytes: limit, discard: DISCARD_BYTES });
  if (body.kind === 'broken') return body;
  const encoding = request.headers['content-encoding'];
  if (isEncoded(encoding)) return { kind: 'encoded', encoding };
  return body.kind === 'bytes' ? { kind: 'bytes', bytes: body.bytes } : { kind: 'too_large' };
};

/** Whether the host's router would take this path for one of the namespace; it ignores case. */
export const isInNamespace = (path: string, apiPrefix: string): boolean => {
  const base = `${withoutTrailingSlashes(apiPrefix)}/${NAMESPACE}`.toLowerCase();
  let decoded = path;
  try {
    decoded = decodeURIComponent(path);
  } catch {
    // Not decodable: judged as it is.
  }
  return [path, decoded].some((candidate) => {
    const lower = candidate.replace(/\/{2,}/g, '/').toLowerCase();
    return lower === base || lower.startsWith(`${base}/`);
  });
};

const isOurs = (body: unknown): boolean =>
  typeof body === 'object' && body !== null && 'ok' in body;

/** Whether a till would read an answer that does not speak its language. */
const isForeign = (ctx: Context): boolean => {
  if (ctx.method === 'OPTIONS' || isOurs(ctx.body)) return false;
  return ctx.status >= 400;
};

/** Paths below the namespace and the method that each of them knows. */
const METHOD_OF: ReadonlyMap<string, 'GET' | 'POST'> = new Map([
  ['/ping', 'GET'],
  ...RECORD_KINDS.flatMap((kind): [string, 'GET' | 'POST'][] => [
    [`/${kind}`, 'POST'],
    [`/schema/${kind}`, 'GET'],
  ]),
  ...ASKING_KINDS.map((kind): [string, 'GET' | 'POST'] => [`/${kind}`, 'POST']),
  ['/schema/batch', 'GET'],
  ['/closing', 'POST'],
  ['/schema/closing', 'GET'],
]);

/** The rest of a path below the namespace, as the table of methods has it; null: not below it. */
const belowNamespace = (path: string): string | null => {
  const below = withoutTrailingSlashes(path.toLowerCase());
  const at = below.indexOf(`/${NAMESPACE}/`);
  return at < 0 ? null : below.slice(at + NAMESPACE.length + 1);
};

/** Bodies that enclose records, or list them, have a limit of their own. */
const ENCLOSING = new Set(['/batch', '/validate', '/closing']);

const limitOf = (path: string, ofRecords: number): number =>
  ENCLOSING.has(belowNamespace(path) ?? '') ? Math.max(LIMITS.batchBytes, ofRecords) : ofRecords;

/**
 * The host's router says 405 to an unknown path as well, because a site's public files take every
 * GET. @returns the method that the path knows; null for a path that is none of ours.
 */
const knownMethod = (path: string): 'GET' | 'POST' | null => {
  const below = belowNamespace(path);
  return below === null ? null : (METHOD_OF.get(below) ?? null);
};

const translate = (ctx: Context): void => {
  let { status } = ctx;
  if (status === 404 || status === 405) {
    const known = knownMethod(ctx.path);
    // A path spelt so that the router does not take it has no method at all.
    status = known === null || known === ctx.method ? 404 : 405;
    if (known === null || status === 404) ctx.remove('Allow');
    else ctx.set('Allow', known);
  }
  ctx.body = hostFailure(status);
  ctx.status = status;
};

/**
 * Comes before the host's middlewares. The host parses JSON before any route and keeps no bytes, so
 * the bytes are read here, bounded, and the content type is hidden from parsers: one that finds a
 * stream already read throws (ARCHITECTURE.md#from-a-sale-to-its-level). Answers of the host in the namespace are
 * put into the till's words on their way out.
 */
export const createRawBodyMiddleware = (app: App) => {
  const prefix = app.strapi.config.get<string>('api.rest.prefix', '/api');
  const { maxBodyBytes } = app.options.pos;
  return async (ctx: Context, next: Next): Promise<void> => {
    if (!isInNamespace(ctx.path, prefix)) return next();
    if (!['GET', 'HEAD', 'OPTIONS'].includes(ctx.method)) {
      const body = await read(ctx.req, limitOf(ctx.path, maxBodyBytes));
      bodies.set(ctx.req, body);
      if (body.kind === 'too_large' || body.kind === 'broken') ctx.set('Connection', 'close');
      leaveUnparsed(ctx.req);
      delete ctx.req.headers['content-encoding'];
    }
    try {
      await next();
    } catch (error) {
      app.log.error(`switchboard: a request of the namespace failed: ${(error as Error).name}`);
      ctx.status = 500;
    }
    if (isForeign(ctx)) translate(ctx);
  };
};
