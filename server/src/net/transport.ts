import type { LookupFunction } from 'node:net';

/** docs/receivers.md#what-to-answer: what is kept of an answer's body. */
const MAX_ANSWER_BYTES = 20_000;
const MAX_HEADERS = 64;
const MAX_HEADER_CHARS = 1000;

/** Pieces of an answer's body that are read: one that comes byte by byte costs as much as a large one. */
const MAX_PIECES = 1000;
/** Answers before the answer (1xx) that are taken; a receiver that works may send one every second. */
const MAX_INFORMATIONAL = 64;

/** What Node tells of an informational answer. */
export interface Informational {
  statusMessage?: string;
  rawHeaders?: readonly string[];
}

/**
 * Counts informational answers against an answer's limits: they cost the reader as much as a body
 * does, and a receiver may send them for ever.
 * @returns a counter that is true once there were too many, or more of them than is kept of a body
 */
export function createInformationalLimit(): (told: Informational) => boolean {
  let count = 0;
  let bytes = 0;
  return ({ statusMessage = '', rawHeaders = [] }) => {
    count += 1;
    bytes += statusMessage.length + rawHeaders.reduce((sum, text) => sum + text.length + 2, 16);
    return count > MAX_INFORMATIONAL || bytes > MAX_ANSWER_BYTES;
  };
}

/** The head of an answer. */
interface AnswerHead {
  status: number;
  /** Names in lower case. */
  headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

/** Collects an answer up to the cap, so that memory does not follow what the receiver sends. */
export class AnswerReader {
  private readonly chunks: Buffer[] = [];
  private room = MAX_ANSWER_BYTES;
  private truncated = false;
  private pieces = 0;

  constructor(private readonly head: AnswerHead) {}

  /** Keeps a chunk; true once there is more than is kept and reading should stop. */
  push(chunk: Buffer): boolean {
    this.pieces += 1;
    this.truncated = chunk.length > this.room || this.pieces > MAX_PIECES;
    // Copied when cut: a slice would hold on to the whole chunk.
    this.chunks.push(this.truncated ? Buffer.from(chunk.subarray(0, this.room)) : chunk);
    this.room -= Math.min(this.room, chunk.length);
    return this.truncated;
  }

  read(): Answer {
    return {
      status: this.head.status,
      headers: readHeaders(this.head.headers),
      body: decodeText(Buffer.concat(this.chunks), this.truncated),
      truncated: this.truncated,
    };
  }
}

/** PostgreSQL's text type refuses NUL. */
const withoutNul = (text: string): string => text.replaceAll('\0', '\ufffd');

function decodeText(bytes: Buffer, truncated: boolean): string {
  if (!truncated) return withoutNul(bytes.toString('utf8'));
  // A streaming decoder leaves out the character that the cut went through.
  return withoutNul(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: true }));
}

function readHeaders(headers: AnswerHead['headers']): Record<string, string> {
  const kept = Object.entries(headers).slice(0, MAX_HEADERS);
  return Object.fromEntries(
    kept.map(([name, value]) => {
      const text = Array.isArray(value) ? value.join(', ') : String(value);
      return [name.slice(0, MAX_HEADER_CHARS), withoutNul(text.slice(0, MAX_HEADER_CHARS))];
    })
  );
}

/** A request whose address and headers were judged. */
export interface JudgedRequest {
  url: URL;
  /** Names in lower case. */
  headers: Record<string, string>;
  /** Sent byte for byte. */
  body: string | Buffer;
  /** Connections made while local addresses were allowed are not for requests that are not. */
  localAllowed: boolean;
  /** Whether a connection of its own is to be made for it. */
  fresh: boolean;
}

/** What a request's sender hears of it. After `end` or `error` it hears nothing more. */
export interface AnswerListener {
  /** An answer before the answer (1xx). */
  informational(told: Informational): void;
  head(head: AnswerHead): void;
  data(chunk: Buffer): void;
  /** The answer was complete. */
  end(): void;
  /** @param wasReused whether the connection had served an earlier request */
  error(error: unknown, wasReused: boolean): void;
}

/** A request that is on its way. */
export interface Sending {
  /** Gives it up, and closes its connection where the answer is not complete. */
  destroy(): void;
}

/**
 * An HTTP client library behind one interface: it posts, and knows nothing of deadlines, limits and
 * causes. It follows no redirect, inflates nothing, tries nothing again, uses no proxy, checks
 * certificates, and asks the guard's lookups for every address that it connects to.
 */
export interface Transport {
  send(request: JudgedRequest, listener: AnswerListener): Sending;
  /** Closes every connection. */
  close(): void;
}

interface TransportOptions {
  /** The guard's: of requests that may reach local addresses, and of all others. */
  lookups: { guarded: LookupFunction; open: LookupFunction };
  /** Connections to one host and port. */
  maxSocketsPerHost: number;
}

/** @throws where its package cannot be loaded */
export type OpenTransport = (options: TransportOptions) => Promise<Transport>;

/** How long an idle connection is kept, in milliseconds. */
export const IDLE_MS = 30_000;
/** Node's 250 ms gives up on receivers that are merely far away when a name has several addresses. */
export const ADDRESS_ATTEMPT_MS = 1000;
/** Sent where nobody says otherwise. */
export const DEFAULT_USER_AGENT = 'Switchboard';

/** An error whose code the HTTP client makes a cause of failure of. */
export class CodedError extends Error {
  constructor(
    readonly code: string,
    message: string
  ) {
    super(message);
    this.name = 'CodedError';
  }
}

/** The receiver sent what HTTP does not allow, or more of it than is read. */
export const invalidAnswer = (): CodedError =>
  new CodedError('ERR_INVALID_ANSWER', 'The answer is not valid HTTP.');

/** The connection ended before the answer did. */
export const closedEarly = (): CodedError =>
  new CodedError('ERR_CLOSED_EARLY', 'The connection was closed before the answer was complete.');

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

/** What `classify` calls a failed attempt. */
type AttemptCause = FailureCause | 'redirect' | `http_${number}`;

/** What a receiver answered, fit for a database: no NUL, bounded. */
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
      /** What had arrived of the answer, if its head had. */
    } & Partial<Answer>);

/** Whether an attempt delivered, and if not, why. */
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

export const failureMessage = (cause: FailureCause): string => FAILURE_MESSAGES[cause];

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
