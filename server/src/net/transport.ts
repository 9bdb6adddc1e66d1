import type { LookupFunction } from 'node:net';

/** Node's informational answer. */
export interface Informational {
  statusMessage?: string;
  rawHeaders?: readonly string[];
}

/** The head of an answer. */
export interface AnswerHead {
  status: number;
  /** Names in lower case. */
  headers: Readonly<Record<string, string | readonly string[] | undefined>>;
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
  /** True to open a new connection for it. */
  fresh: boolean;
}

/** Callbacks of a request's sender. No call follows `end` or `error`. */
export interface AnswerListener {
  /** An answer before the answer (1xx). */
  informational(info: Informational): void;
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

/** @throws if its package cannot be loaded */
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
