import {
  ClientRequest,
  Agent as HttpAgent,
  type IncomingMessage,
  type RequestOptions,
  validateHeaderName,
  validateHeaderValue,
} from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { LookupFunction } from 'node:net';
import { performance } from 'node:perf_hooks';
import type { Duplex } from 'node:stream';
import type { Got, Request, RequestFunction } from 'got';
import type { AddressGuard } from './guard';
import {
  ADDRESS_ATTEMPT_MS,
  type AnswerHead,
  DEFAULT_USER_AGENT,
  IDLE_MS,
  type Informational,
  invalidAnswer,
  type JudgedRequest,
  type OpenTransport,
  type Sending,
  type Transport,
} from './transport';

/**
 * Why an attempt brought no complete answer. Answers that are failures by their status have the
 * further causes `redirect` and `http_<status>`, which `classify` gives.
 */
export const FAILURE_CAUSES = [
  'dns',
  'refused',
  'unreachable',
  'tls',
  'timeout',
  'closed',
  'blocked_address',
  'invalid_request',
  'invalid_response',
  'aborted',
  'unknown',
] as const;

export type FailureCause = (typeof FAILURE_CAUSES)[number];

/** The cause of a failed attempt, by `classify`. */
type AttemptCause = FailureCause | 'redirect' | `http_${number}`;

/** A receiver's answer, fit for a database: no NUL, bounded. */
export interface Answer {
  status: number;
  /** Names in lower case; a repeated header's values are joined by `, `. */
  headers: Record<string, string>;
  /** At most the first 20,000 bytes, read as UTF-8. */
  body: string;
  /** More than that was sent, and not read. */
  truncated: boolean;
}

/** One attempt, as the HTTP client saw it; times in milliseconds. */
export type AttemptOutcome =
  | ({ kind: 'answered'; durationMs: number } & Answer)
  | ({
      kind: 'failed';
      cause: FailureCause;
      /** A sentence of ours, safe to show and to store. */
      message: string;
      durationMs: number;
      /** The part of the answer that had arrived, if its head had. */
    } & Partial<Answer>);

/** The outcome of an attempt: delivered, or why not. */
type Classification =
  { ok: true; cause: null; message: null } | { ok: false; cause: AttemptCause; message: string };

const FAILURE_MESSAGES: Record<FailureCause, string> = {
  dns: 'The host name could not be resolved.',
  refused: 'The connection was refused.',
  unreachable: 'The host could not be reached.',
  tls: 'The secure connection (TLS) could not be made.',
  timeout: 'There was no complete answer in time.',
  closed: 'The receiver closed the connection before its answer was complete.',
  blocked_address:
    'The address is that of this server or of a private network, which is refused unless the option webhooks.allowPrivateNetworks allows it.',
  invalid_request: 'The request cannot be sent.',
  invalid_response: 'The answer is not valid HTTP.',
  aborted: 'The attempt was stopped because the site is shutting down.',
  unknown: 'The request failed.',
};

/**
 * Judges an attempt (docs/contract-webhooks.md#delivery-states): any 2xx delivers; a redirect,
 * any other status and no complete answer are failures.
 */
export function classify(outcome: AttemptOutcome): Classification {
  if (outcome.kind === 'failed') {
    return { ok: false, cause: outcome.cause, message: outcome.message };
  }
  const { status } = outcome;
  if (status >= 200 && status < 300) return { ok: true, cause: null, message: null };
  if (status >= 300 && status < 400) {
    return {
      ok: false,
      cause: 'redirect',
      message: `The receiver answered with a redirect (${status}), which is not followed.`,
    };
  }
  return {
    ok: false,
    cause: `http_${status}`,
    message: `The receiver answered with status ${status}.`,
  };
}

const CAUSE_BY_CODE: Record<string, FailureCause> = {
  ERR_BLOCKED_ADDRESS: 'blocked_address',
  ERR_NAME_NOT_RESOLVED: 'dns',
  ECONNREFUSED: 'refused',
  EHOSTUNREACH: 'unreachable',
  EHOSTDOWN: 'unreachable',
  ENETUNREACH: 'unreachable',
  ENETDOWN: 'unreachable',
  EADDRNOTAVAIL: 'unreachable',
  EACCES: 'unreachable',
  EPERM: 'unreachable',
  EINVAL: 'unreachable',
  ETIMEDOUT: 'timeout',
  ECONNRESET: 'closed',
  ECONNABORTED: 'closed',
  EPIPE: 'closed',
  ERR_CLOSED_EARLY: 'closed',
  ERR_INVALID_ANSWER: 'invalid_response',
  EPROTO: 'tls',
  HOSTNAME_MISMATCH: 'tls',
  ERR_INVALID_CHAR: 'invalid_request',
  ERR_INVALID_HTTP_TOKEN: 'invalid_request',
  ERR_UNESCAPED_CHARACTERS: 'invalid_request',
  ERR_INVALID_URL: 'invalid_request',
  // Errors of got itself, such as for the host name `unix`, have no code of their own.
  ERR_GOT_REQUEST_ERROR: 'invalid_request',
};

/** OpenSSL's names for what can be wrong with a certificate have no common prefix. */
const CERTIFICATE_CODE =
  /^(?:ERR_TLS_|ERR_SSL_|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_|ERROR_IN_C|PATH_LENGTH_)/;

const CERTIFICATE_MESSAGES: Record<string, string> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: 'The certificate is self-signed.',
  SELF_SIGNED_CERT_IN_CHAIN: 'The certificate was issued by an unknown authority.',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'The certificate chain is incomplete.',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'The certificate was issued by an unknown authority.',
  CERT_HAS_EXPIRED: 'The certificate has expired.',
  CERT_NOT_YET_VALID: 'The certificate is not valid yet.',
  CERT_REVOKED: 'The certificate was revoked.',
  ERR_TLS_CERT_ALTNAME_INVALID: 'The certificate belongs to another host name.',
};

/** An error, what it wraps, and (several addresses tried) what it gathers: the first code found. */
function codeOf(error: unknown, depth = 0): string {
  if (typeof error !== 'object' || error === null || depth > 4) return '';
  const { code, cause, errors } = error as { code?: unknown; cause?: unknown; errors?: unknown };
  const inner = codeOf(cause, depth + 1) || (Array.isArray(errors) && codeOf(errors[0], depth + 1));
  return inner || (typeof code === 'string' ? code : '');
}

function causeOf(code: string, error: unknown): FailureCause {
  // Node gives a hang-up during the TLS handshake the code of any other hang-up.
  if (code === 'ECONNRESET' && /before secure TLS connection/.test(String(error))) return 'tls';
  const known = Object.hasOwn(CAUSE_BY_CODE, code) ? CAUSE_BY_CODE[code] : undefined;
  if (known) return known;
  if (CERTIFICATE_CODE.test(code)) return 'tls';
  return code.startsWith('HPE_') ? 'invalid_response' : 'unknown';
}

/** The receiver hung up: on a kept-alive connection that may just mean that it had been idle. */
function isHangUp(error: unknown): boolean {
  return causeOf(codeOf(error), error) === 'closed';
}

/** Framing and routing belong to the client: a wrong one is a request of somebody else's making. */
const OWN_HEADERS = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'proxy-connection',
  'upgrade',
  'expect',
  'te',
  'trailer',
]);

type PreparedHeaders =
  { ok: true; headers: Record<string, string> } | { ok: false; message: string };

/**
 * Makes sendable headers of what extension hooks may have left. Null and undefined values are left
 * out, numbers and booleans written as text; what HTTP does not allow is named, not thrown.
 */
function prepareHeaders(input: unknown): PreparedHeaders {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    return { ok: false, message: 'The request headers are not an object.' };
  }
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(input as Record<string, unknown>)) {
    const lower = name.toLowerCase();
    if (value === undefined || value === null || OWN_HEADERS.has(lower)) continue;
    if (!isSendable(lower, value)) {
      return { ok: false, message: `The request header ${printable(name)} is not valid.` };
    }
    headers[lower] = String(value);
  }
  return { ok: true, headers };
}

function isSendable(name: string, value: unknown): boolean {
  // HTTP would take it, an object's own key it cannot be.
  if (name === '__proto__' || !['string', 'number', 'boolean'].includes(typeof value)) return false;
  try {
    validateHeaderName(name);
    validateHeaderValue(name, String(value));
    return true;
  } catch {
    return false;
  }
}

const printable = (name: string): string =>
  JSON.stringify(name.slice(0, 64).replace(/[^\x20-\x7e]/g, '?'));

/** docs/receivers.md#what-to-answer: what is kept of an answer's body. */
const MAX_ANSWER_BYTES = 20_000;
const MAX_HEADERS = 64;
const MAX_HEADER_CHARS = 1000;

/** Pieces of an answer's body that are read: one that comes byte by byte costs as much as a large one. */
const MAX_PIECES = 1000;
/**
 * Answers before the answer (1xx) that are taken, with no more bytes than are kept of a body: they cost
 * as much, and a receiver may send them for ever. One that works may send one every second.
 */
const MAX_INFORMATIONAL = 64;

/** PostgreSQL's text type refuses NUL. */
const withoutNul = (text: string): string => text.replaceAll('\0', '\ufffd');

/** Collects an answer up to the cap, so that memory does not follow what the receiver sends. */
class AnswerReader {
  private readonly chunks: Buffer[] = [];
  private room = MAX_ANSWER_BYTES;
  private truncated = false;

  constructor(private readonly head: AnswerHead) {}

  /** Keeps a chunk; true once there is more than is kept and reading should stop. */
  push(chunk: Buffer): boolean {
    this.truncated = chunk.length > this.room || this.chunks.length >= MAX_PIECES;
    // Copied when cut: a slice would hold on to the whole chunk.
    this.chunks.push(this.truncated ? Buffer.from(chunk.subarray(0, this.room)) : chunk);
    this.room -= Math.min(this.room, chunk.length);
    return this.truncated;
  }

  read(): Answer {
    const { status } = this.head;
    const headers = Object.entries(this.head.headers)
      .slice(0, MAX_HEADERS)
      .map(([name, value]) => {
        const text = Array.isArray(value) ? value.join(', ') : String(value);
        return [name.slice(0, MAX_HEADER_CHARS), withoutNul(text.slice(0, MAX_HEADER_CHARS))];
      });
    const { truncated } = this;
    const bytes = Buffer.concat(this.chunks);
    // A streaming decoder leaves out the character that the cut went through.
    const body = truncated
      ? new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: true })
      : bytes.toString('utf8');
    return { status, headers: Object.fromEntries(headers), body: withoutNul(body), truncated };
  }
}

type Callback = (response: IncomingMessage) => void;

/** As Node's own `http.request` calls it; its types leave the middle one out. */
const Direct = ClientRequest as unknown as new (
  url: URL,
  options: RequestOptions,
  callback?: Callback
) => ClientRequest;

/**
 * got is ESM only, hence `import`. Everything that a single request need not say is said
 * here: each option costs time on every request. It is used as a stream, which is a third faster
 * than its promises and lets the answer be cut off.
 */
const loadGot = async (): Promise<Got> => {
  const { got } = await import('got');
  return got.extend({
    method: 'POST',
    isStream: true,
    retry: { limit: 0 },
    followRedirect: false,
    decompress: false,
    throwHttpErrors: false,
    // Set, so that NODE_TLS_REJECT_UNAUTHORIZED=0 somewhere on the site does not reach receivers.
    https: { rejectUnauthorized: true },
    headers: { 'user-agent': DEFAULT_USER_AGENT },
    // Over its own agent, whatever its scheme. Not `http.request`: with `server.proxy` the host has that
    // one, and the one of `https`, put a proxy's agent in the place of any other, and a proxy looks the
    // name up by itself, so the address that it connects to is not the one that was judged.
    request: ((url: URL, options: RequestOptions, callback?: Callback) =>
      new Direct(url, options, callback)) as RequestFunction,
  });
};

/** The client `got`, over agents of our own: no other code's sockets are used, and every connect asks `lookup`. */
export const openGot: OpenTransport = async ({ lookups, maxSocketsPerHost: maxSockets }) => {
  const got = await loadGot();
  const agents: HttpAgent[] = [];
  const over = (lookup: LookupFunction, keepAlive: boolean): Got => {
    const options = {
      keepAlive,
      maxSockets,
      maxFreeSockets: maxSockets,
      timeout: IDLE_MS,
      autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_MS,
      lookup,
    };
    const agent = { http: new HttpAgent(options), https: new HttpsAgent(options) };
    agents.push(agent.http, agent.https);
    return got.extend({ agent });
  };
  // An instance for each kind of connection: an option that a request need not say costs it nothing.
  const instances = (lookup: LookupFunction) => ({
    pooled: over(lookup, true),
    fresh: over(lookup, false),
  });
  const guarded = instances(lookups.guarded);
  const open = instances(lookups.open);
  return {
    send({ url, headers, body, localAllowed, fresh }: JudgedRequest, listener) {
      const instance = (localAllowed ? open : guarded)[fresh ? 'fresh' : 'pooled'];
      const stream = instance(url.href, { headers, body }) as unknown as Request;
      let over = false;
      const fail = (error: unknown): void => {
        // Errors after the first one, or after our own destroying, need a listener and are ignored.
        if (over) return;
        over = true;
        listener.error(error, stream.reusedSocket === true);
      };
      stream.once('response', ({ statusCode, headers }: IncomingMessage) =>
        listener.head({ status: statusCode ?? 0, headers })
      );
      stream.on('information', (info: Informational) => listener.informational(info));
      stream.on('data', (chunk: Buffer) => listener.data(chunk));
      stream.once('end', () => {
        over = true;
        listener.end();
      });
      // 101: the socket has left the request, nobody else would close it.
      stream.once('upgrade', (_response: IncomingMessage, socket: Duplex) => {
        socket.destroy();
        fail(invalidAnswer());
      });
      stream.on('error', fail);
      return {
        destroy() {
          over = true;
          stream.destroy();
        },
      };
    },
    close() {
      for (const agent of agents) agent.destroy();
    },
  };
};

export interface HttpPost {
  url: string;
  headers: Record<string, string>;
  /** Sent byte for byte. */
  body: string | Buffer;
}

interface HttpClientOptions {
  guard: AddressGuard;
  /** One deadline for an attempt, from DNS to the last byte of the answer. */
  timeoutMs: number;
  /** Connections to one host and port; at least the number of simultaneous posts. 64 by default. */
  maxSocketsPerHost?: number;
  /** The library that posts; got by default. */
  transport?: OpenTransport;
}

/**
 * The HTTP client of deliveries and tests (docs/contract-webhooks.md#requests-to-receivers): guarded
 * addresses, one deadline, no redirect followed, nothing inflated, an answer read to 20,000 bytes,
 * whatever library posts.
 */
export class HttpClient {
  private readonly transport: Promise<Transport>;
  private readonly running = new Set<Attempt>();
  private closed = false;

  constructor(private readonly options: HttpClientOptions) {
    const { guard, maxSocketsPerHost = 64, transport: open = openGot } = options;
    // At once: compiling a client's modules would hold the event loop in the middle of the first attempts.
    this.transport = open({ lookups: guard.lookups, maxSocketsPerHost });
    // The caller that posts gets the error.
    this.transport.catch(() => {});
  }

  /** One attempt. Never rejects: whatever goes wrong is an outcome. */
  async post(request: HttpPost): Promise<AttemptOutcome> {
    const attempt = new Attempt(this.options.guard, this.options.timeoutMs);
    if (this.closed) attempt.fail('aborted');
    this.running.add(attempt);
    try {
      attempt.start(this.transport, request).catch((error: unknown) => attempt.failWith(error));
      return await attempt.outcome;
    } finally {
      this.running.delete(attempt);
    }
  }

  /** Ends what is under way (`aborted`) and closes every connection. Later posts are `aborted`. */
  close(): void {
    this.closed = true;
    for (const attempt of this.running) attempt.fail('aborted');
    this.transport.then(
      (transport) => transport.close(),
      () => {}
    );
  }
}

/** One request on its way; the first thing to settle it wins, the rest is ignored. */
class Attempt {
  private readonly startedAt = performance.now();
  private readonly deadline: NodeJS.Timeout;
  readonly outcome: Promise<AttemptOutcome>;
  private resolve: (outcome: AttemptOutcome) => void = () => undefined;
  private settled = false;
  private sending: Sending | undefined;
  private answer: AnswerReader | undefined;
  private informed = { count: 0, bytes: 0 };

  constructor(
    private readonly guard: AddressGuard,
    timeoutMs: number
  ) {
    this.outcome = new Promise((resolve) => (this.resolve = resolve));
    this.deadline = setTimeout(() => this.fail('timeout'), timeoutMs);
  }

  fail(cause: FailureCause, message = FAILURE_MESSAGES[cause]): void {
    this.settle((durationMs) => ({
      kind: 'failed',
      cause,
      message,
      durationMs,
      ...this.answer?.read(),
    }));
  }

  /**
   * Names a network error in words of ours. The driver's own text is dropped: it can hold addresses
   * and, for a refused one, would tell an open port from a closed one.
   */
  failWith(error: unknown): void {
    const code = codeOf(error);
    const cause = causeOf(code, error);
    this.fail(cause, CERTIFICATE_MESSAGES[code] ?? FAILURE_MESSAGES[cause]);
  }

  async start(opening: Promise<Transport>, request: HttpPost): Promise<void> {
    const { url, body } = request;
    const prepared = prepareHeaders(request.headers);
    if (!prepared.ok) return this.fail('invalid_request', prepared.message);
    if (typeof body !== 'string' && !Buffer.isBuffer(body)) {
      return this.fail('invalid_request', 'The request body is neither text nor bytes.');
    }
    const transport = await opening;
    const inspection = await this.guard.inspectUrl(url);
    if (inspection.verdict !== 'allowed') {
      // A refused literal and a refused name read the same in the log.
      return inspection.verdict === 'refused'
        ? this.fail('blocked_address')
        : this.fail('invalid_request', inspection.reason);
    }
    // got takes it for the name of a socket file.
    if (inspection.url.hostname === 'unix') return this.fail('invalid_request');

    const { headers } = prepared;
    const { localAllowed } = inspection;
    if (!this.settled) {
      this.send(transport, { url: inspection.url, headers, body, localAllowed, fresh: false });
    }
  }

  private send(transport: Transport, request: JudgedRequest): void {
    this.sending = transport.send(request, {
      informational: (info) => this.noteInformational(info),
      head: (head) => (this.answer = new AnswerReader(head)),
      data: (chunk) => {
        if (this.answer?.push(chunk)) this.finish();
      },
      end: () => this.finish(),
      error: (error, wasReused) => {
        if (this.settled) return;
        // A receiver may close an idle connection at the moment we use it. That is no failure of the
        // receiver; a delivery that arrives twice by this has the same id both times.
        const wasIdle = wasReused && !this.answer && isHangUp(error);
        if (wasIdle && !request.fresh) this.send(transport, { ...request, fresh: true });
        else this.failWith(error);
      },
    });
  }

  private noteInformational({ statusMessage = '', rawHeaders = [] }: Informational): void {
    const { count, bytes } = this.informed;
    const more = statusMessage.length + rawHeaders.reduce((sum, text) => sum + text.length + 2, 16);
    this.informed = { count: count + 1, bytes: bytes + more };
    if (count >= MAX_INFORMATIONAL || bytes + more > MAX_ANSWER_BYTES) {
      this.fail('invalid_response', 'The receiver sent informational answers without end.');
    }
  }

  private finish(): void {
    const { answer } = this;
    if (!answer) return this.fail('unknown');
    this.settle((durationMs) => ({ kind: 'answered', durationMs, ...answer.read() }));
  }

  private settle(describe: (durationMs: number) => AttemptOutcome): void {
    if (this.settled) return;
    this.settled = true;
    clearTimeout(this.deadline);
    this.resolve(describe(Math.round(performance.now() - this.startedAt)));
    this.sending?.destroy();
  }
}
