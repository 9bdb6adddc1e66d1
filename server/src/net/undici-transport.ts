import { connect as connectPlain, isIP, type LookupFunction, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type * as Undici from 'undici';
import type { buildConnector, Client, Dispatcher } from 'undici';
import { loadOptional } from '../runtime/optional-package';
import {
  ADDRESS_ATTEMPT_MS,
  type AnswerListener,
  closedEarly,
  DEFAULT_USER_AGENT,
  IDLE_MS,
  invalidAnswer,
  type JudgedRequest,
  type OpenTransport,
  type Sending,
} from './transport';

/** The used part of the optional package. */
type UndiciPackage = Pick<typeof Undici, 'Client'>;

/**
 * Loads the package, which a site installs only for `webhooks.client: 'undici'`.
 * @throws Error that says what to install; the host then refuses to boot.
 */
export const loadUndici = async (): Promise<UndiciPackage> => {
  const [loaded] = await loadOptional('webhooks.client is "undici"', ['undici']);
  const { Client } = loaded as typeof Undici;
  return { Client };
};

/** A client of the package that has one connection at a time, and what is known of that. */
interface Connection {
  readonly origin: string;
  readonly client: Client;
  /** From the moment in which connecting begins. */
  socket: Socket | null;
  /** Requests that were written to the socket. */
  uses: number;
  /** The bytes that the socket had read when the last of them was written. */
  readBefore: number;
}

interface Origin {
  /** All of them, busy or idle. */
  all: Set<Connection>;
  idle: Connection[];
  waiting: Set<(connection: Connection) => void>;
}

/**
 * Bytes that a socket may bring for one request. Much less of an answer is kept, and reading stops there;
 * only the parts that are neither head nor body (extensions of chunks) come as far as this.
 */
const MAX_READ_BYTES = 256 * 1024;

const KEEP_ALIVE_PROBE_MS = 60_000;

/** Connects as the agents of the client got do; the package's own connector hands out no socket to close. */
const createConnector =
  (lookup: LookupFunction, begun: (socket: Socket) => void): buildConnector.connector =>
  ({ hostname, protocol, port }, done) => {
    const isSecure = protocol === 'https:';
    const common = {
      host: hostname,
      port: Number(port) || (isSecure ? 443 : 80),
      lookup,
      autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_MS,
    };
    const socket = isSecure
      ? connectTls({
          ...common,
          ALPNProtocols: ['http/1.1'],
          servername: isIP(hostname) === 0 ? hostname : '',
          // Set, so that NODE_TLS_REJECT_UNAUTHORIZED=0 somewhere on the site does not reach receivers.
          rejectUnauthorized: true,
        })
      : connectPlain(common);
    begun(socket);
    const failed = (error: Error): void => done(error, null);
    socket
      .setNoDelay(true)
      .setKeepAlive(true, KEEP_ALIVE_PROBE_MS)
      .once('error', failed)
      .once(isSecure ? 'secureConnect' : 'connect', () => {
        socket.off('error', failed);
        done(null, socket);
      });
  };

/** Connections made under one policy, kept between requests. */
class Connections {
  private readonly origins = new Map<string, Origin>();

  constructor(
    private readonly undici: UndiciPackage,
    private readonly lookup: LookupFunction,
    private readonly maxPerOrigin: number
  ) {}

  /**
   * Gives a connection to `use` that is idle, or one that is still to be made; at once where there is
   * room for one, else when another request has ended.
   * @returns gives up waiting for it
   */
  take(name: string, fresh: boolean, use: (connection: Connection) => void): () => void {
    const origin = this.originOf(name);
    if (fresh || origin.idle.length > 0 || origin.all.size < this.maxPerOrigin) {
      use((fresh ? undefined : origin.idle.pop()) ?? this.open(name, origin));
      return () => {};
    }
    origin.waiting.add(use);
    return () => void origin.waiting.delete(use);
  }

  /** The request has ended well: the next one may have the connection. */
  release(connection: Connection): void {
    const origin = this.origins.get(connection.origin);
    if (!origin?.all.has(connection)) return;
    origin.idle.push(connection);
    this.serveNext(connection.origin, origin);
  }

  /** Closes the connection, whatever it is doing. */
  discard(connection: Connection): void {
    const { origin: name, client, socket } = connection;
    const origin = this.origins.get(name);
    if (!origin?.all.delete(connection)) return;
    origin.idle = origin.idle.filter((one) => one !== connection);
    client.destroy().catch(() => {});
    // One that is still connecting is not the client's yet.
    socket?.destroy();
    this.serveNext(name, origin);
  }

  close(): void {
    for (const origin of this.origins.values()) {
      origin.waiting.clear();
      for (const connection of [...origin.all]) this.discard(connection);
    }
  }

  private originOf(name: string): Origin {
    let origin = this.origins.get(name);
    if (!origin) {
      origin = { all: new Set(), idle: [], waiting: new Set() };
      this.origins.set(name, origin);
    }
    return origin;
  }

  private open(name: string, origin: Origin): Connection {
    const client = new this.undici.Client(name, {
      connect: createConnector(this.lookup, (socket) => {
        connection.socket = socket;
        // Before the package's own listener, which parses what is there.
        socket.on('readable', () => {
          if (socket.bytesRead - connection.readBefore > MAX_READ_BYTES) {
            socket.destroy(invalidAnswer());
          }
        });
      }),
      pipelining: 1,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: IDLE_MS,
      // The attempt has one deadline for everything.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    const connection: Connection = { origin: name, client, socket: null, uses: 0, readBefore: 0 };
    client.on('disconnect', () => {
      connection.uses = 0;
      connection.readBefore = 0;
      if (origin.idle.includes(connection)) this.discard(connection);
    });
    origin.all.add(connection);
    return connection;
  }

  /** Room for one that waits. */
  private serveNext(name: string, origin: Origin): void {
    const [next] = origin.waiting;
    if (next && (origin.idle.length > 0 || origin.all.size < this.maxPerOrigin)) {
      origin.waiting.delete(next);
      next(origin.idle.pop() ?? this.open(name, origin));
    } else if (origin.all.size === 0 && origin.waiting.size === 0) this.origins.delete(name);
  }
}

/** Headers of which Node keeps the first, where an answer has several; of all others it keeps all. */
const SINGLE = new Set(
  'age content-length content-type etag expires last-modified location retry-after server'.split(
    ' '
  )
);

/** Names and values by turns, as the package hands them out, in the shape that Node gives them. */
const readHeaders = (raw: readonly Buffer[]): Record<string, string> => {
  // Without a prototype: the name `__proto__` is one like any other.
  const headers = Object.create(null) as Record<string, string>;
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = String(raw[at]?.toString('latin1')).toLowerCase();
    const value = String(raw[at + 1]?.toString('latin1'));
    const before = headers[name];
    if (before === undefined) headers[name] = value;
    else if (!SINGLE.has(name)) headers[name] = `${before}, ${value}`;
  }
  return headers;
};

/** The package's own errors in terms of ours; those of sockets, names and certificates are Node's. */
const inOurTerms = (error: Error, { socket }: Connection): Error => {
  const ended = socket?.readableEnded === true;
  switch ((error as { code?: unknown }).code) {
    case 'UND_ERR_SOCKET':
      return /^bad /.test(error.message) ? invalidAnswer() : closedEarly();
    case 'UND_ERR_HEADERS_OVERFLOW':
      return invalidAnswer();
    case 'HPE_INVALID_EOF_STATE':
    case 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH':
      return ended ? closedEarly() : invalidAnswer();
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
 * @throws Error that says what to install if the package is missing
 */
export const openUndici: OpenTransport = async ({ lookups, maxSocketsPerHost }) => {
  const undici = await loadUndici();
  const guarded = new Connections(undici, lookups.guarded, maxSocketsPerHost);
  const open = new Connections(undici, lookups.open, maxSocketsPerHost);
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
