import type { IncomingMessage } from 'node:http';
import { performance } from 'node:perf_hooks';
import type { Duplex } from 'node:stream';
import type { Got, Request } from 'got';
import { createAgents, type AgentPair } from './agents';
import {
  type AnswerReader,
  createAnswerReader,
  createInformationalLimit,
  type Informational,
} from './answer';
import { failureMessage, type AttemptOutcome, type FailureCause } from './attempt-outcome';
import { describeError, isHangUp } from './failure';
import type { AddressGuard } from './guard';
import { prepareHeaders } from './request-headers';

export interface HttpPost {
  url: string;
  headers: Record<string, string>;
  /** Sent byte for byte. */
  body: string | Buffer;
}

export interface HttpClient {
  /** One attempt. Never rejects: whatever goes wrong is an outcome. */
  post(request: HttpPost): Promise<AttemptOutcome>;
  /** Ends what is under way (`aborted`) and closes every connection. Later posts are `aborted`. */
  close(): void;
}

export interface HttpClientOptions {
  guard: AddressGuard;
  /** One deadline for an attempt, from DNS to the last byte of the answer. */
  timeoutMs: number;
  /** Connections to one host and port; at least the number of simultaneous posts. 64 by default. */
  maxSocketsPerHost?: number;
}

/** What an attempt needs from the client around it. */
interface Sender {
  got: Got;
  guard: AddressGuard;
  /** Connections made while local addresses were allowed are not for requests that are not. */
  agentsFor(localAllowed: boolean): { pooled: AgentPair; fresh: AgentPair };
}

/**
 * The HTTP client of deliveries and tests (docs/contract-webhooks.md#requests-to-receivers): guarded addresses, one deadline, no redirect followed, nothing inflated, an answer
 * read to 20,000 bytes.
 */
export function createHttpClient(options: HttpClientOptions): HttpClient {
  const { guard, timeoutMs, maxSocketsPerHost = 64 } = options;
  const guarded = createAgents(guard.lookups.guarded, maxSocketsPerHost);
  const open = createAgents(guard.lookups.open, maxSocketsPerHost);
  const agentsFor = (localAllowed: boolean) => (localAllowed ? open : guarded);
  const running = new Set<Attempt>();
  // At once: compiling got's modules would hold the event loop in the middle of the first attempts.
  const sender: Promise<Sender> = loadGot().then((got) => ({ got, guard, agentsFor }));
  // Whoever posts hears of it.
  sender.catch(() => {});
  let closed = false;

  return {
    async post(request) {
      const attempt = new Attempt(timeoutMs);
      if (closed) attempt.fail('aborted');
      running.add(attempt);
      try {
        return await attempt.run(sender, request);
      } finally {
        running.delete(attempt);
      }
    },
    close() {
      closed = true;
      for (const attempt of running) attempt.fail('aborted');
      guarded.destroy();
      open.destroy();
    },
  };
}

/**
 * got is ESM only, hence `import`. Everything that a single request need not say is said
 * here: each option costs time on every request. It is used as a stream, which is a third faster
 * than its promises and lets the answer be cut off.
 */
async function loadGot(): Promise<Got> {
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
    headers: { 'user-agent': 'Switchboard' },
  });
}

/** One request on its way; the first thing to settle it wins, the rest is ignored. */
class Attempt {
  private readonly startedAt = performance.now();
  private readonly deadline: NodeJS.Timeout;
  private readonly outcome: Promise<AttemptOutcome>;
  private resolve: (outcome: AttemptOutcome) => void = () => undefined;
  private settled = false;
  private stream: Request | undefined;
  private answer: AnswerReader | undefined;
  private readonly isTooMuch = createInformationalLimit();

  constructor(timeoutMs: number) {
    this.outcome = new Promise((resolve) => (this.resolve = resolve));
    this.deadline = setTimeout(() => this.fail('timeout'), timeoutMs);
  }

  run(sender: Promise<Sender>, request: HttpPost): Promise<AttemptOutcome> {
    this.start(sender, request).catch((error: unknown) => this.failWith(error));
    return this.outcome;
  }

  fail(cause: FailureCause, message = failureMessage(cause)): void {
    this.settle((durationMs) => ({
      kind: 'failed',
      cause,
      message,
      durationMs,
      ...this.answer?.read(),
    }));
  }

  private failWith(error: unknown): void {
    const { cause, message } = describeError(error);
    this.fail(cause, message);
  }

  private async start(sender: Promise<Sender>, request: HttpPost): Promise<void> {
    const { url, body } = request;
    const prepared = prepareHeaders(request.headers);
    if (!prepared.ok) return this.fail('invalid_request', prepared.message);
    if (typeof body !== 'string' && !Buffer.isBuffer(body)) {
      return this.fail('invalid_request', 'The request body is neither text nor bytes.');
    }
    const { got, guard, agentsFor } = await sender;
    const inspection = await guard.inspectUrl(url);
    if (inspection.verdict !== 'allowed') {
      // A refused literal and a refused name read the same in the log.
      return inspection.verdict === 'refused'
        ? this.fail('blocked_address')
        : this.fail('invalid_request', inspection.reason);
    }

    const { pooled, fresh } = agentsFor(inspection.localAllowed);
    const { headers } = prepared;
    const send = (agent: AgentPair): Request =>
      got(inspection.url.href, { agent, headers, body }) as unknown as Request;
    if (!this.settled) this.listen(send(pooled), () => this.listen(send(fresh)));
  }

  private listen(stream: Request, sendAgain?: () => void): void {
    this.stream = stream;
    stream.once('response', (response: IncomingMessage) => {
      this.answer = createAnswerReader(response);
    });
    stream.on('information', (told: Informational) => {
      if (!this.settled && this.isTooMuch(told)) {
        this.fail('invalid_response', 'The receiver sent informational answers without end.');
      }
    });
    stream.on('data', (chunk: Buffer) => {
      if (this.answer?.push(chunk)) this.finish();
    });
    stream.once('end', () => this.finish());
    // 101: the socket has left the request, nobody else would close it.
    stream.once('upgrade', (_response: IncomingMessage, socket: Duplex) => {
      socket.destroy();
      this.fail('invalid_response');
    });
    // Not `once`: what follows the first error, or our own destroying, must find a listener.
    stream.on('error', (error) => {
      if (stream !== this.stream || this.settled) return;
      // A receiver may close an idle connection at the moment we use it. That is no failure of the
      // receiver; a delivery that arrives twice by this has the same id both times.
      const wasIdle = stream.reusedSocket === true && !this.answer && isHangUp(error);
      if (wasIdle && sendAgain) sendAgain();
      else this.failWith(error);
    });
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
    this.stream?.destroy();
  }
}
