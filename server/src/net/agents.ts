import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { LookupFunction } from 'node:net';
import { ADDRESS_ATTEMPT_MS, IDLE_MS } from './transport';

export interface AgentPair {
  http: HttpAgent;
  https: HttpsAgent;
}

/** Connections made under one policy. */
export interface Agents {
  /** Kept alive between requests. */
  pooled: AgentPair;
  /** A new connection for each request. */
  fresh: AgentPair;
  destroy(): void;
}

/** Agents of our own, so that no other code's sockets are used and every connect asks `lookup`. */
export function createAgents(lookup: LookupFunction, maxSockets: number): Agents {
  const createPair = (keepAlive: boolean): AgentPair => {
    const options = {
      keepAlive,
      maxSockets,
      maxFreeSockets: maxSockets,
      timeout: IDLE_MS,
      autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_MS,
      lookup,
    };
    return { http: new HttpAgent(options), https: new HttpsAgent(options) };
  };
  const pooled = createPair(true);
  const fresh = createPair(false);
  return {
    pooled,
    fresh,
    destroy() {
      for (const { http, https } of [pooled, fresh]) {
        http.destroy();
        https.destroy();
      }
    },
  };
}
