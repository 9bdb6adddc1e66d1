import http, { type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import https from 'node:https';
import net, { type AddressInfo, type Server, type Socket } from 'node:net';

export interface Receiver {
  port: number;
  url: string;
  /** Connections taken so far. */
  connections(): number;
  /** Bytes sent on all of them so far. */
  bytesSent(): number;
  /** Whether every connection ends within a second. */
  isIdle(): Promise<boolean>;
  /** Requests with their whole bodies, in order. */
  requests: { headers: IncomingMessage['headers']; body: string }[];
}

const pause = () => new Promise((done) => setTimeout(done, 5));
const open = new Set<() => Promise<void>>();

async function listen(server: Server, scheme: string): Promise<Receiver> {
  const sockets: Socket[] = [];
  server.on('connection', (socket) => {
    socket.on('error', () => undefined);
    sockets.push(socket);
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  open.add(
    () =>
      new Promise((done) => {
        server.close(() => done());
        for (const socket of sockets) socket.destroy();
      })
  );
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `${scheme}://127.0.0.1:${port}/hook`,
    connections: () => sockets.length,
    bytesSent: () => sockets.reduce((sum, socket) => sum + socket.bytesWritten, 0),
    async isIdle() {
      const end = Date.now() + 1000;
      while (Date.now() < end && !sockets.every((socket) => socket.destroyed)) await pause();
      return sockets.every((socket) => socket.destroyed);
    },
    requests: [],
  };
}

/** A receiver on loopback whose handler runs once the request's body is there. */
export async function startReceiver(
  handle: (request: IncomingMessage, response: ServerResponse) => void,
  tls?: { key: string; cert: string }
): Promise<Receiver> {
  const listener: RequestListener = (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      receiver.requests.push({ headers: request.headers, body: Buffer.concat(chunks).toString() });
      handle(request, response);
    });
  };
  const server = tls ? https.createServer(tls, listener) : http.createServer(listener);
  server.on('tlsClientError', () => undefined);
  const receiver = await listen(server, tls ? 'https' : 'http');
  return receiver;
}

/** A receiver that need not speak HTTP; `onData` has each chunk and how many came before it. */
export function startRawReceiver(
  onData: (socket: Socket, connection: number, chunk: number) => void
): Promise<Receiver> {
  let connections = 0;
  const server = net.createServer((socket) => {
    connections += 1;
    const connection = connections;
    let chunk = 0;
    socket.on('data', () => {
      chunk += 1;
      onData(socket, connection, chunk);
    });
  });
  return listen(server, 'http');
}

/** A port on which nothing listens. */
export async function findClosedPort(): Promise<number> {
  const server = net.createServer();
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  return port;
}

export async function stopReceivers(): Promise<void> {
  await Promise.all([...open].map((stop) => stop()));
  open.clear();
}
