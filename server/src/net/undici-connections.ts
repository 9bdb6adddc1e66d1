import { connect as connectPlain, isIP, type LookupFunction, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { buildConnector, Client } from 'undici';
import { ADDRESS_ATTEMPT_MS, IDLE_MS, InvalidAnswerError } from './transport';
import type { UndiciPackage } from './undici-package';

/** A client of the package that has one connection at a time, and what is known of that. */
export interface Connection {
  readonly origin: string;
  readonly client: Client;
  /** From the moment in which connecting begins. */
  socket: Socket | null;
  /** Requests that were written to the socket. */
  uses: number;
  /** What the socket had read when the last of them was written. */
  readBefore: number;
}

/** Connections made under one policy, kept between requests. */
export interface Connections {
  /**
   * Gives a connection to `use` that is idle, or one that is still to be made; at once where there is
   * room for one, else when another request has ended.
   * @returns gives up waiting for it
   */
  take(origin: string, fresh: boolean, use: (connection: Connection) => void): () => void;
  /** The request has ended well: the next one may have the connection. */
  release(connection: Connection): void;
  /** Closes the connection, whatever it is doing. */
  discard(connection: Connection): void;
  close(): void;
}

interface Origin {
  /** All of them, busy or idle. */
  all: Set<Connection>;
  idle: Connection[];
  waiting: Set<(connection: Connection) => void>;
}

/**
 * Bytes that a socket may bring for one request. What is kept of an answer is far less, and reading
 * stops there; only what is no part of head or body (extensions of chunks) comes as far as this.
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

export const createConnections = (
  { Client }: UndiciPackage,
  lookup: LookupFunction,
  maxPerOrigin: number
): Connections => {
  const origins = new Map<string, Origin>();

  const originOf = (name: string): Origin => {
    let origin = origins.get(name);
    if (!origin) {
      origin = { all: new Set(), idle: [], waiting: new Set() };
      origins.set(name, origin);
    }
    return origin;
  };

  const open = (name: string, origin: Origin): Connection => {
    const client = new Client(name, {
      connect: createConnector(lookup, (socket) => {
        connection.socket = socket;
        // Before the package's own listener, which parses what is there.
        socket.on('readable', () => {
          if (socket.bytesRead - connection.readBefore > MAX_READ_BYTES) {
            socket.destroy(new InvalidAnswerError());
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
      if (origin.idle.includes(connection)) discard(connection);
    });
    origin.all.add(connection);
    return connection;
  };

  /** Room for one that waits. */
  const serveNext = (name: string, origin: Origin): void => {
    const [next] = origin.waiting;
    if (next && (origin.idle.length > 0 || origin.all.size < maxPerOrigin)) {
      origin.waiting.delete(next);
      next(origin.idle.pop() ?? open(name, origin));
    } else if (origin.all.size === 0 && origin.waiting.size === 0) origins.delete(name);
  };

  const discard = (connection: Connection): void => {
    const { origin: name, client, socket } = connection;
    const origin = origins.get(name);
    if (!origin?.all.delete(connection)) return;
    origin.idle = origin.idle.filter((one) => one !== connection);
    client.destroy().catch(() => {});
    // One that is still connecting is not the client's yet.
    socket?.destroy();
    serveNext(name, origin);
  };

  return {
    take(name, fresh, use) {
      const origin = originOf(name);
      if (fresh || origin.idle.length > 0 || origin.all.size < maxPerOrigin) {
        use((fresh ? undefined : origin.idle.pop()) ?? open(name, origin));
        return () => {};
      }
      origin.waiting.add(use);
      return () => void origin.waiting.delete(use);
    },
    release(connection) {
      const origin = origins.get(connection.origin);
      if (!origin?.all.has(connection)) return;
      origin.idle.push(connection);
      serveNext(connection.origin, origin);
    },
    discard,
    close() {
      for (const origin of origins.values()) {
        origin.waiting.clear();
        for (const connection of [...origin.all]) discard(connection);
      }
    },
  };
};
