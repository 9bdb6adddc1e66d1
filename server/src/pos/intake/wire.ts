import type { IncomingMessage } from 'node:http';
import type { Context, Next } from 'koa';
import type { Accepted } from '../../../../shared/contracts/till-answers';
import type { App } from '../../app';
import { leaveUnparsed, readBoundedBody, withoutTrailingSlashes } from '../../http/bounded-body';
import {
  ASKING_KINDS,
  type AskingKind,
  ERROR_STATUS,
  type ErrorCode,
  type EventKind,
  LIMITS,
  RECORD_KINDS,
  schemaId,
  type Scope,
} from '../rules/records';
import type { BodyIssue } from '../rules/strict-json';
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

export const notReady = (): Refusal =>
  new Refusal(
    'not_ready',
    'The service is not ready: its database cannot be used now. Try again later.',
    {},
    { 'Retry-After': '5' }
  );

export const schemaInvalid = (
  kind: EventKind | AskingKind,
  { field, message }: BodyIssue
): Refusal => new Refusal('schema_invalid', message, { field, schema: schemaId(kind) });

export const answerOfRefusal = ({ code, message, details }: Refusal) => ({
  status: ERROR_STATUS[code],
  body: { ok: false as const, code, message, ...details },
});

/** The answer to a till whose record was accepted. @throws Refusal if it was not */
export const answerOfAcceptance = (
  kind: EventKind,
  acceptance: Acceptance
): { status: 200 | 202; body: Accepted } => {
  if (acceptance.outcome === 'invalid') throw schemaInvalid(kind, acceptance.issue);
  const { stale } = acceptance;
  if (acceptance.outcome === 'stale') {
    throw new Refusal(
      'stale_count',
      'Every line is older than a count that was accepted before; do not send it again.',
      { stale }
    );
  }
  const base = { ok: true as const, event_id: acceptance.eventId };
  const rest = stale.length > 0 ? { stale } : {};
  if (acceptance.outcome === 'accepted') {
    return { status: 202, body: { ...base, state: 'pending', duplicate: false, ...rest } };
  }
  const { state, mismatch, mode } = acceptance;
  return {
    status: 200,
    body: {
      ...base,
      state,
      duplicate: true,
      ...(mismatch && { payload_mismatch: true as const }),
      ...(mode === 'test' && { mode }),
      ...rest,
    },
  };
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

/** True if a statement failed because a table of ours is missing. */
export const isMissingTable = (error: unknown): boolean => {
  const { code, errno, message } = (error ?? {}) as Record<string, unknown>;
  if (code === '42P01' || code === 'ER_NO_SUCH_TABLE' || errno === 1146) return true;
  return code === 'SQLITE_ERROR' && MISSING_TABLE.test(String(message));
};

const tooLarge = (): Refusal =>
  new Refusal('payload_too_large', 'The body is larger than this service takes.');

/** The checks of what a record is, wherever it stands. Each throws its Refusal. */

export const requireSize = (body: Buffer, maxBytes: number): void => {
  if (body.length > maxBytes) throw tooLarge();
};

export const hasScope = ({ scopes }: Pick<ConnectionRow, 'scopes'>, scope: Scope): boolean =>
  (JSON.parse(scopes) as string[]).includes(scope);

export const requireScope = (connection: ConnectionRow, scope: Scope): void => {
  if (hasScope(connection, scope)) return;
  throw new Refusal('insufficient_scope', `The connection lacks the scope ${scope}.`, {
    required_scope: scope,
  });
};

/** The bytes of requests in the namespace, exactly as they came, or why they are not to be had. */
const bodies = new WeakMap<IncomingMessage, Buffer | Refusal>();

/** The bytes of a request in the namespace. @throws Refusal if they are not to be had */
export const requireBody = (request: IncomingMessage): Buffer => {
  const body = bodies.get(request) ?? Buffer.alloc(0);
  if (body instanceof Refusal) throw body;
  return body;
};

/** A till that is still sending gets to read the answer; past this the connection is closed on it. */
const DISCARD_BYTES = 4 * 1024 * 1024;

const readBody = async (request: IncomingMessage, limit: number): Promise<Buffer | Refusal> => {
  const body = await readBoundedBody(request, { bytes: limit, discard: DISCARD_BYTES });
  // The sender went away in the middle.
  if (body.kind === 'broken') return new Refusal('schema_invalid', 'body must arrive whole');
  const encoding = request.headers['content-encoding']?.trim().toLowerCase() ?? '';
  if (!['', 'identity'].includes(encoding)) {
    const message = 'Send the body uncompressed, without Content-Encoding.';
    return new Refusal('unsupported_encoding', message);
  }
  return body.kind === 'bytes' ? body.bytes : tooLarge();
};

const NAMESPACE = 'service-pos/v1';

/** True if the host's router would take this path for one of the namespace; it ignores case. */
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

/** The routes below the namespace, with their handlers. */
export const TILL_ROUTES = [
  ['GET', '/ping', 'tills.ping'] as const,
  ...[...RECORD_KINDS, ...ASKING_KINDS, 'closing'].map(
    (kind) => ['POST', `/${kind}`, `tills.${kind}`] as const
  ),
  ...[...RECORD_KINDS, 'batch', 'closing'].map(
    (kind) => ['GET', `/schema/${kind}`, `pos-schemas.${kind}`] as const
  ),
];

const METHOD_OF = new Map<string, string>(TILL_ROUTES.map(([method, path]) => [path, method]));

/** The rest of a path below the namespace, as the table of methods has it; '': not below it. */
const belowNamespace = (path: string): string => {
  const below = withoutTrailingSlashes(path.toLowerCase());
  const at = below.indexOf(`/${NAMESPACE}/`);
  return at < 0 ? '' : below.slice(at + NAMESPACE.length + 1);
};

/** Bodies that enclose records, or list them, have a limit of their own. */
const ENCLOSING = ['/batch', '/validate', '/closing'];

/** Translates an answer of the host for tills. Its router says 405 for unknown paths, as public files serve any GET. */
const translate = (ctx: Context): void => {
  let { status } = ctx;
  if (status === 404 || status === 405) {
    const known = METHOD_OF.get(belowNamespace(ctx.path));
    // A path spelt so that the router does not take it has no method at all.
    status = known === undefined || known === ctx.method ? 404 : 405;
    if (known === undefined || status === 404) ctx.remove('Allow');
    else ctx.set('Allow', known);
  }
  ctx.body = hostFailure(status);
  ctx.status = status;
};

/**
 * Runs before the host's middlewares, whose parser keeps no raw bytes: reads the body within limits, and hides its
 * content type, because parsers throw on a stream that was read (ARCHITECTURE.md#from-a-sale-to-its-level).
 */
export const createRawBodyMiddleware = (app: App) => {
  const prefix = app.strapi.config.get<string>('api.rest.prefix', '/api');
  const { maxBodyBytes } = app.options.pos;
  return async (ctx: Context, next: Next): Promise<void> => {
    if (!isInNamespace(ctx.path, prefix)) return next();
    if (!['GET', 'HEAD', 'OPTIONS'].includes(ctx.method)) {
      const isEnclosing = ENCLOSING.includes(belowNamespace(ctx.path));
      const limit = isEnclosing ? Math.max(LIMITS.batchBytes, maxBodyBytes) : maxBodyBytes;
      const body = await readBody(ctx.req, limit);
      bodies.set(ctx.req, body);
      if (body instanceof Refusal && body.code !== 'unsupported_encoding') {
        ctx.set('Connection', 'close');
      }
      leaveUnparsed(ctx.req);
      delete ctx.req.headers['content-encoding'];
    }
    try {
      await next();
    } catch (error) {
      app.log.error(`switchboard: a request of the namespace failed: ${(error as Error).name}`);
      ctx.status = 500;
    }
    const isOurs = typeof ctx.body === 'object' && ctx.body !== null && 'ok' in ctx.body;
    if (ctx.method !== 'OPTIONS' && ctx.status >= 400 && !isOurs) translate(ctx);
  };
};
