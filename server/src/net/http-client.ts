import type { EventEmitter } from 'node:events';
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
import { urlToHttpOptions } from 'node:url';
import type { Duplex, Readable } from 'node:stream';
import type { Got, Request, RequestFunction } from 'got';
import { isRecord } from '../runtime/text';
import type { AddressGuard } from './guard';
import { CodedError } from './resolver';

export interface Informational {
  statusMessage?: string;
  rawHeaders?: readonly string[];
}

export interface AnswerHead {
  status: number;
  /** Names in lower case. */
  headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

export interface JudgedRequest {
  url: URL;
  /** Names in lower case. */
  headers: Record<string, string>;
  /** Sent byte for byte. */
  body: string | Buffer;
  /** Connections made while local addresses were allowed are not for requests that are not. */
  localAllowed: boolean;
  /** True to open a new connection for it. */
  fresh: boolean;
}

/** Callbacks of a request's sender. No call follows `end` or `error`. */
export interface AnswerListener {
  /** An answer before the answer (1xx). */
  informational(info: Informational): void;
  head(head: AnswerHead): void;
  data(chunk: Buffer): void;
  end(): void;
  /** @param wasReused whether the connection had served an earlier request */
  error(error: unknown, wasReused: boolean): void;
}

export interface Sending {
  /** Gives it up, and closes its connection if the answer is incomplete. */
  destroy(): void;
}

/**
 * An HTTP client library behind one interface: it only posts; deadlines, limits and causes belong to the caller. It
 * follows no redirect, inflates nothing, retries nothing, uses no proxy, checks certificates, resolves by the guard.
 */
export interface Transport {
  send(request: JudgedRequest, listener: AnswerListener): Sending;
  close(): void;
}

interface TransportOptions {
  /** The guard's: of requests that may reach local addresses, and of all others. */
  lookups: { guarded: LookupFunction; open: LookupFunction };
  maxSocketsPerHost: number;
}

export type OpenTransport = (options: TransportOptions) => Promise<Transport>;

/** How long an idle connection is kept, in milliseconds. */
const IDLE_MS = 30_000;
/** Node's 250 ms gives up on receivers that are merely far away when a name has several addresses. */
const ADDRESS_ATTEMPT_MS = 1000;
/** The default `User-Agent`. */
const DEFAULT_USER_AGENT = 'Switchboard';

interface Agents {
  http: HttpAgent;
  https: HttpsAgent;
}

interface Outgoing extends EventEmitter {
  reusedSocket?: boolean;
  destroy(): unknown;
}

/**
 * A request over the given agent. Not `http.request`: with `server.proxy` the host replaces any agent there (and in
 * `https`) by a proxy's, which resolves the name itself, so the address would not be the judged one.
 */
const makeRequest = (url: URL, { agent, headers, method }: RequestOptions): ClientRequest => {
  const { protocol, hostname, port, path, auth } = urlToHttpOptions(url);
  const request = { protocol, hostname, port, path, auth, agent, headers, method };
  return Reflect.construct(ClientRequest, [request]) as ClientRequest;
};

/** Tells the listener of a request and its answer: `end` or `error` once, and neither after `destroy`. */
const follow = (request: Outgoing, listener: AnswerListener) => {
  let over = false;
  const finish = (tell: () => void): void => {
    if (over) return;
    over = true;
    tell();
  };
  // Errors after the first one, or after our own destroying, need a listener and are ignored.
  const fail = (error: unknown): void =>
    finish(() => listener.error(error, request.reusedSocket === true));
  request.once('response', ({ statusCode, headers }: IncomingMessage) =>
    listener.head({ status: statusCode ?? 0, headers })
  );
  request.on('information', (info: Informational) => listener.informational(info));
  // 101: the socket no longer belongs to the request, so it must be closed here.
  request.once('upgrade', (_response: IncomingMessage, socket: Duplex) => {
    socket.destroy();
    fail(new CodedError('ERR_INVALID_ANSWER', 'The answer is not valid HTTP.'));
  });
  request.on('error', fail);
  return {
    fail,
    read(body: Readable): void {
      body.on('data', (chunk: Buffer) => listener.data(chunk));
      body.once('end', () => finish(() => listener.end()));
    },
    destroy(): void {
      over = true;
      request.destroy();
    },
  };
};

/**
 * A transport over own agents: it shares no sockets with other code, and every connect uses `lookups`.
 * @param clientOver creates the client of `send` for each kind of connection
 */
const transportOver = <Client>(
  { lookups, maxSocketsPerHost: maxSockets }: TransportOptions,
  clientOver: (agents: Agents) => Client,
  send: (client: Client, request: JudgedRequest, listener: AnswerListener) => Sending
): Transport => {
  const opened: HttpAgent[] = [];
  const over = (lookup: LookupFunction, keepAlive: boolean): Client => {
    const options = {
      keepAlive,
      maxSockets,
      maxFreeSockets: maxSockets,
      timeout: IDLE_MS,
      autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_MS,
      lookup,
    };
    const http = new HttpAgent(options);
    // Set, so that NODE_TLS_REJECT_UNAUTHORIZED=0 somewhere on the site does not reach receivers.
    const https = new HttpsAgent({ ...options, rejectUnauthorized: true });
    opened.push(http, https);
    return clientOver({ http, https });
  };
  const clients = (lookup: LookupFunction) => ({
    pooled: over(lookup, true),
    fresh: over(lookup, false),
  });
  const guarded = clients(lookups.guarded);
  const open = clients(lookups.open);
  return {
    send(request, listener) {
      const { localAllowed, fresh } = request;
      return send((localAllowed ? open : guarded)[fresh ? 'fresh' : 'pooled'], request, listener);
    },
    close() {
      for (const agent of opened) agent.destroy();
    },
  };
};

/** got is ESM only, hence `import`. Streams are a third faster than its promises, and allow cutting off the answer. */
const loadGot = async (): Promise<Got> => {
  const { got } = await import('got');
  return got.extend({
    method: 'POST',
    isStream: true,
    retry: { limit: 0 },
    followRedirect: false,
    decompress: false,
    throwHttpErrors: false,
    headers: { 'user-agent': DEFAULT_USER_AGENT },
    request: makeRequest as RequestFunction,
  });
};

export const openGot: OpenTransport = async (options) => {
  const got = await loadGot();
  // An instance for each kind of connection: an option that a request need not say costs it nothing.
  const over = (agent: Agents): Got => {
    const instance = got.extend({ agent, mutableDefaults: true });
    // Unused cache options; with them, all options of a request become a slow object.
    instance.defaults.options.cacheOptions = {};
    return instance;
  };
  return transportOver(options, over, (instance, { url, headers, body }, listener) => {
    const stream = instance(url.href, { headers, body }) as unknown as Request;
    const sending = follow(stream, listener);
    sending.read(stream);
    return sending;
  });
};

/** The client `node`: Node's own requests, without what got does for each. */
export const openNode: OpenTransport = async (options) =>
  transportOver(
    options,
    (agents) => agents,
    (agents, { url, headers, body }, listener) => {
      const request = makeRequest(url, {
        agent: url.protocol === 'https:' ? agents.https : agents.http,
        method: 'POST',
        headers: {
          'user-agent': DEFAULT_USER_AGENT,
          ...headers,
          'content-length': Buffer.byteLength(body),
        },
      });
      const sending = follow(request, listener);
      request.once('response', (response) => {
        response.on('error', sending.fail);
        sending.read(response);
      });
      request.end(body);
      return sending;
    }
  );

/** Causes of incomplete attempts, with error codes; `classify` adds `redirect` and `http_<status>` for answers. */
const CAUSES = {
  dns: ['ERR_NAME_NOT_RESOLVED'],
  refused: ['ECONNREFUSED'],
  unreachable: [
    ...['EHOSTUNREACH', 'EHOSTDOWN', 'ENETUNREACH', 'ENETDOWN', 'EADDRNOTAVAIL', 'EACCES'],
    ...['EPERM', 'EINVAL'],
  ],
  // OpenSSL's names for what can be wrong with a certificate are told by `CERTIFICATE_CODE`.
  tls: ['EPROTO', 'HOSTNAME_MISMATCH'],
  timeout: ['ETIMEDOUT'],
  closed: ['ECONNRESET', 'ECONNABORTED', 'EPIPE'],
  blocked_address: ['ERR_BLOCKED_ADDRESS'],
  invalid_request: [
    ...['ERR_INVALID_CHAR', 'ERR_INVALID_HTTP_TOKEN', 'ERR_UNESCAPED_CHARACTERS'],
    // Errors of got itself, such as for the host name `unix`, have no code of their own.
    ...['ERR_INVALID_URL', 'ERR_GOT_REQUEST_ERROR'],
  ],
  invalid_response: ['ERR_INVALID_ANSWER'],
  aborted: [],
  unknown: [],
} as const satisfies Record<string, readonly string[]>;

export type FailureCause = keyof typeof CAUSES;

export const FAILURE_CAUSES = Object.keys(CAUSES) as FailureCause[];

const CAUSE_BY_CODE = new Map<string, FailureCause>(
  FAILURE_CAUSES.flatMap((cause) => CAUSES[cause].map((code) => [code, cause] as const))
);

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
  // With the part of the answer that had arrived, if its head had.
  | ({ kind: 'failed'; durationMs: number; cause: FailureCause } & Partial<Answer>);

/** Judges an attempt (docs/contract-webhooks.md#delivery-states): only a 2xx answer delivers. */
export function classify(
  outcome: AttemptOutcome
): { ok: true; cause: null } | { ok: false; cause: FailureCause | 'redirect' | `http_${number}` } {
  if (outcome.kind === 'failed') return { ok: false, cause: outcome.cause };
  const { status } = outcome;
  if (status >= 200 && status < 300) return { ok: true, cause: null };
  return { ok: false, cause: status >= 300 && status < 400 ? 'redirect' : `http_${status}` };
}

/** OpenSSL's names for what can be wrong with a certificate have no common prefix. */
const CERTIFICATE_CODE =
  /^(?:ERR_TLS_|ERR_SSL_|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_|ERROR_IN_C|PATH_LENGTH_)/;

/** An error, what it wraps, and (several addresses tried) what it gathers: the first code found. */
function codeOf(error: unknown, depth = 0): string {
  if (typeof error !== 'object' || error === null || depth > 4) return '';
  const { code, cause, errors } = error as { code?: unknown; cause?: unknown; errors?: unknown };
  const inner = codeOf(cause, depth + 1) || (Array.isArray(errors) && codeOf(errors[0], depth + 1));
  return inner || (typeof code === 'string' ? code : '');
}

/** The driver's own text is dropped: for a refused address it would tell an open port from a closed one. */
function causeOf(error: unknown): FailureCause {
  const code = codeOf(error);
  // Node gives a hang-up during the TLS handshake the code of any other hang-up.
  if (code === 'ECONNRESET' && /before secure TLS connection/.test(String(error))) return 'tls';
  const known = CAUSE_BY_CODE.get(code);
  if (known) return known;
  if (CERTIFICATE_CODE.test(code)) return 'tls';
  return code.startsWith('HPE_') ? 'invalid_response' : 'unknown';
}

/** Framing and routing belong to the client: wrong values would allow request smuggling. */
const OWN_HEADERS = new Set([
  ...['host', 'content-length', 'transfer-encoding', 'connection', 'keep-alive'],
  ...['proxy-connection', 'upgrade', 'expect', 'te', 'trailer'],
]);

/** Makes headers of hooks sendable: drops null and undefined, writes others as text; null if HTTP forbids one. */
function prepareHeaders(input: unknown): Record<string, string> | null {
  if (!isRecord(input)) return null;
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(input)) {
    const lower = name.toLowerCase();
    if (value === undefined || value === null || OWN_HEADERS.has(lower)) continue;
    if (!isSendable(lower, value)) return null;
    headers[lower] = String(value);
  }
  return headers;
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

/** docs/receivers.md#what-to-answer: what is kept of an answer's body. */
const MAX_ANSWER_BYTES = 20_000;
const MAX_HEADERS = 64;
const MAX_HEADER_CHARS = 1000;

/** Pieces of an answer's body that are read: one that comes byte by byte costs as much as a large one. */
const MAX_PIECES = 1000;
/** Maximum of informational answers (1xx), which a receiver that is working may send each second, or for ever. */
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

export interface HttpPost extends Pick<JudgedRequest, 'headers' | 'body'> {
  url: string;
  /** Private addresses are open for it; by default the guard asks. */
  localAllowed?: boolean;
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
 * The HTTP client of deliveries and tests (docs/contract-webhooks.md#requests-to-receivers): guarded addresses, one
 * deadline, no redirects, no inflating, 20,000 bytes of the answer, with any library.
 */
export class HttpClient {
  private readonly transport: Promise<Transport>;
  private readonly opened: Promise<Transport | void>;
  private readonly running = new Set<Attempt>();
  private closed = false;

  constructor(private readonly options: HttpClientOptions) {
    const { guard, maxSocketsPerHost = 64, transport: open = openGot } = options;
    // At once: compiling a client's modules would hold the event loop in the middle of the first attempts.
    this.transport = open({ lookups: guard.lookups, maxSocketsPerHost });
    // The attempt gets the error.
    this.opened = this.transport.catch(() => {});
  }

  /** One attempt. Never rejects: every error is an outcome. */
  async post(request: HttpPost): Promise<AttemptOutcome> {
    // Loading the library is not the receiver's time.
    await this.opened;
    const attempt = new Attempt(this.options.guard, this.options.timeoutMs);
    if (this.closed) attempt.fail('aborted');
    this.running.add(attempt);
    try {
      attempt.start(this.transport, request).catch((error) => attempt.fail(causeOf(error)));
      return await attempt.outcome;
    } finally {
      this.running.delete(attempt);
    }
  }

  /** Ends what is under way (`aborted`) and closes every connection. Later posts are `aborted`. */
  close(): void {
    this.closed = true;
    for (const attempt of this.running) attempt.fail('aborted');
    void this.opened.then((transport) => transport?.close());
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

  fail(cause: FailureCause): void {
    this.settle((durationMs) => ({ kind: 'failed', cause, durationMs, ...this.answer?.read() }));
  }

  async start(opening: Promise<Transport>, request: HttpPost): Promise<void> {
    const { body } = request;
    const headers = prepareHeaders(request.headers);
    if (!headers || (typeof body !== 'string' && !Buffer.isBuffer(body))) {
      return this.fail('invalid_request');
    }
    const transport = await opening;
    const inspection = await this.guard.inspectUrl(request.url, request.localAllowed);
    if (inspection.verdict !== 'allowed') {
      return this.fail(inspection.verdict === 'refused' ? 'blocked_address' : 'invalid_request');
    }
    const { localAllowed, url } = inspection;
    // got takes it for the name of a socket file.
    if (url.hostname === 'unix') return this.fail('invalid_request');
    if (!this.settled) this.send(transport, { url, headers, body, localAllowed, fresh: false });
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
        const cause = causeOf(error);
        const wasIdle = wasReused && !this.answer && cause === 'closed';
        if (wasIdle && !request.fresh) this.send(transport, { ...request, fresh: true });
        else this.fail(cause);
      },
    });
  }

  private noteInformational({ statusMessage = '', rawHeaders = [] }: Informational): void {
    const { count, bytes } = this.informed;
    const more = statusMessage.length + rawHeaders.reduce((sum, text) => sum + text.length + 2, 16);
    this.informed = { count: count + 1, bytes: bytes + more };
    if (count >= MAX_INFORMATIONAL || bytes + more > MAX_ANSWER_BYTES) {
      this.fail('invalid_response');
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
