import {
  ClientRequest,
  Agent as HttpAgent,
  type IncomingMessage,
  type RequestOptions,
} from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { LookupFunction } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Got, Request, RequestFunction } from 'got';
import {
  ADDRESS_ATTEMPT_MS,
  type AnswerListener,
  DEFAULT_USER_AGENT,
  IDLE_MS,
  type Informational,
  invalidAnswer,
  type JudgedRequest,
  type OpenTransport,
  type Sending,
} from './transport';

type Callback = (response: IncomingMessage) => void;

/** As Node's own `http.request` calls it; its types leave the middle one out. */
const Direct = ClientRequest as unknown as new (
  url: URL,
  options: RequestOptions,
  callback?: Callback
) => ClientRequest;

/**
 * A request over its own agent, whatever its scheme. Not `http.request`: with `server.proxy` the host has
 * that one, and the one of `https`, put a proxy's agent in the place of any other, and a proxy looks the name up
 * by itself, so the address that it connects to is not the one that was judged.
 */
const requestDirectly = (url: URL, options: RequestOptions, callback?: Callback): ClientRequest =>
  new Direct(url, options, callback);

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
    request: requestDirectly as RequestFunction,
  });
};

const follow = (stream: Request, listener: AnswerListener): Sending => {
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
      return follow(instance(url.href, { headers, body }) as unknown as Request, listener);
    },
    close() {
      for (const agent of agents) agent.destroy();
    },
  };
};
