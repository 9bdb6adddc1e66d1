import type { Dispatcher } from 'undici';
import {
  type AnswerListener,
  ClosedEarlyError,
  DEFAULT_USER_AGENT,
  InvalidAnswerError,
  type JudgedRequest,
  type OpenTransport,
  type Sending,
} from './transport';
import { type Connection, type Connections, createConnections } from './undici-connections';
import { loadUndici } from './undici-package';

/** Headers of which Node keeps the first, where an answer has several; of all others it keeps all. */
const SINGLE = new Set(
  'age content-length content-type etag expires last-modified location retry-after server'.split(
    ' '
  )
);

/** Names and values by turns, as the package hands them out, in the shape that Node gives them. */
const readHeaders = (raw: readonly Buffer[]): Record<string, string> => {
  const headers: Record<string, string> = {};
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = String(raw[at]?.toString('latin1')).toLowerCase();
    const value = String(raw[at + 1]?.toString('latin1'));
    const before = Object.hasOwn(headers, name) ? headers[name] : undefined;
    if (before === undefined) {
      // Not an assignment: the name `__proto__` would be one to the prototype.
      Object.defineProperty(headers, name, {
        value,
        enumerable: true,
        configurable: true,
        writable: true,
      });
    } else if (!SINGLE.has(name)) headers[name] = `${before}, ${value}`;
  }
  return headers;
};

/** The package's own errors in terms of ours; those of sockets, names and certificates are Node's. */
const inOurTerms = (error: Error, { socket }: Connection): Error => {
  const ended = socket?.readableEnded === true;
  switch ((error as { code?: unknown }).code) {
    case 'UND_ERR_SOCKET':
      return /^bad /.test(error.message) ? new InvalidAnswerError() : new ClosedEarlyError();
    case 'UND_ERR_HEADERS_OVERFLOW':
      return new InvalidAnswerError();
    case 'HPE_INVALID_EOF_STATE':
    case 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH':
      return ended ? new ClosedEarlyError() : new InvalidAnswerError();
    default:
      return error;
  }
};

/** One request, and what the package calls to tell of its answer. */
class Exchange implements Dispatcher.DispatchHandlers, Sending {
  private connection: Connection | null = null;
  private over = false;
  private wasReused = false;
  private giveUpWaiting: () => void = () => {};

  constructor(
    private readonly connections: Connections,
    private readonly request: JudgedRequest,
    private readonly listener: AnswerListener
  ) {}

  start(): void {
    const { url, fresh } = this.request;
    this.giveUpWaiting = this.connections.take(url.origin, fresh, (connection) => {
      this.connection = connection;
      const { headers, body } = this.request;
      connection.client.dispatch(
        {
          path: `${url.pathname}${url.search}`,
          method: 'POST',
          headers: { 'user-agent': DEFAULT_USER_AGENT, ...headers },
          body,
        },
        this
      );
    });
  }

  onConnect(): void {
    const { connection } = this;
    if (!connection) return;
    this.wasReused = connection.uses > 0;
    connection.uses += 1;
    connection.readBefore = connection.socket?.bytesRead ?? 0;
  }

  onHeaders(status: number, raw: Buffer[], _resume: () => void, statusText: string): boolean {
    if (this.over) return true;
    if (status >= 200) this.listener.head({ status, headers: readHeaders(raw) });
    else {
      const rawHeaders = raw.map((text) => text.toString('latin1'));
      this.listener.informational({ statusMessage: statusText, rawHeaders });
    }
    return true;
  }

  onData(chunk: Buffer): boolean {
    if (!this.over) this.listener.data(chunk);
    return true;
  }

  onComplete(): void {
    if (this.over) return;
    this.over = true;
    const { connection } = this;
    // Once the package has put the request away: it calls this in the middle of parsing.
    if (connection) queueMicrotask(() => this.connections.release(connection));
    this.listener.end();
  }

  onError(error: Error): void {
    if (this.over) return;
    this.over = true;
    const { connection } = this;
    if (connection) this.connections.discard(connection);
    this.listener.error(connection ? inOurTerms(error, connection) : error, this.wasReused);
  }

  destroy(): void {
    if (this.over) return;
    this.over = true;
    this.giveUpWaiting();
    if (this.connection) this.connections.discard(this.connection);
  }
}

/**
 * The client `undici`, an optional package: below its pools, because those tell of no request whether
 * its connection had been used before.
 * @throws Error that says what to install where the package is missing
 */
export const openUndici: OpenTransport = async ({ lookups, maxSocketsPerHost }) => {
  const undici = await loadUndici();
  const guarded = createConnections(undici, lookups.guarded, maxSocketsPerHost);
  const open = createConnections(undici, lookups.open, maxSocketsPerHost);
  return {
    send(request, listener) {
      const exchange = new Exchange(request.localAllowed ? open : guarded, request, listener);
      exchange.start();
      return exchange;
    },
    close() {
      guarded.close();
      open.close();
    },
  };
};
