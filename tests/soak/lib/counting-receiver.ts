import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { watchServer } from '../../support/leak-check';

/** How the receiver of a webhook behaves. */
export type Manner = { hangs: true } | { status: number; delayMs: number };

export interface Arrival {
  /** Epoch milliseconds. */
  at: number;
  /** The process that made the attempt. */
  pid: number;
}

/** More attempts were under way at once to one webhook than its cap allows. */
export interface Excess {
  at: number;
  webhook: number;
  atOnce: number;
  /** As many of them were made by one process. */
  byOneProcess: number;
}

export interface CountingReceiver {
  /** Where the webhook of that number is sent to. */
  urlOf(webhook: number): string;
  /** What came for each webhook: delivery ids, each with its attempts in order. */
  readonly arrivals: readonly ReadonlyMap<string, Arrival[]>[];
  readonly excesses: readonly Excess[];
  /** How many attempts were under way at most to one webhook. */
  mostAtOnce(): number;
  /** Milliseconds from `data.at` of the trickle's events until they came, with that time. */
  readonly delays: readonly { at: number; ms: number }[];
  close(): Promise<void>;
}

interface Open {
  pid: number;
  /** Its connection ended before it was answered. */
  isAborted: boolean;
}

/** In such a time the end of a connection that its process has closed is heard of. */
const HEARD_WITHIN_MS = 100;

const mostOfOneProcess = (open: readonly Open[]): number => {
  const counts = new Map<number, number>();
  for (const { pid } of open) counts.set(pid, (counts.get(pid) ?? 0) + 1);
  return Math.max(0, ...counts.values());
};

/**
 * A receiver for hundreds of thousands of posts: it keeps who sent what and when, and no bodies.
 * @param manners one a webhook
 * @param cap attempts that may be under way at once to one webhook
 * @param trickle the number of the webhook whose events have `data.at`
 */
export const startCountingReceiver = async (
  manners: readonly Manner[],
  cap: number,
  trickle: number
): Promise<CountingReceiver> => {
  const arrivals = manners.map(() => new Map<string, Arrival[]>());
  const open = manners.map(() => new Set<Open>());
  const excesses: Excess[] = [];
  const delays: { at: number; ms: number }[] = [];
  let most = 0;

  /** A moment later: the end of an attempt and the begin of the next one may be heard in any order. */
  const judge = (webhook: number, at: number, then: readonly Open[]): void => {
    setTimeout(() => {
      const really = then.filter(({ isAborted }) => !isAborted);
      most = Math.max(most, really.length);
      if (really.length <= cap) return;
      const byOneProcess = mostOfOneProcess(really);
      excesses.push({ at, webhook, atOnce: really.length, byOneProcess });
    }, HEARD_WITHIN_MS);
  };

  const note = (webhook: number, { headers }: http.IncomingMessage, at: number): Open => {
    const pid = Number(headers['x-made-by']);
    const id = String(headers['x-service-delivery']);
    const posts = arrivals[webhook].get(id);
    if (posts) posts.push({ at, pid });
    else arrivals[webhook].set(id, [{ at, pid }]);
    const attempt = { pid, isAborted: false };
    open[webhook].add(attempt);
    if (open[webhook].size > cap) judge(webhook, at, [...open[webhook]]);
    else most = Math.max(most, open[webhook].size);
    return attempt;
  };

  const server = http.createServer((request, response) => {
    const at = Date.now();
    const webhook = Number(request.url?.slice(1));
    const manner = manners[webhook];
    if (!manner) throw new Error(`there is no webhook ${request.url}`);
    const attempt = note(webhook, request, at);
    let body = '';
    if (webhook === trickle) request.on('data', (chunk) => (body += chunk));
    else request.resume();
    request.on('error', () => {});
    request.on('end', () => {
      if (webhook !== trickle) return;
      const { data } = JSON.parse(body) as { data: { at: number } };
      delays.push({ at: data.at, ms: at - data.at });
    });
    response.on('close', () => {
      attempt.isAborted = open[webhook].delete(attempt);
    });
    if ('hangs' in manner) return;
    setTimeout(() => {
      open[webhook].delete(attempt);
      response.writeHead(manner.status, { 'content-length': 0 }).end();
    }, manner.delayMs);
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  watchServer(server);
  const { port } = server.address() as AddressInfo;

  return {
    urlOf: (webhook) => `http://127.0.0.1:${port}/${webhook}`,
    arrivals,
    excesses,
    mostAtOnce: () => most,
    delays,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};
