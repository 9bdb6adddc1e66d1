import { performance } from 'node:perf_hooks';
import {
  type AnswerReader,
  createAnswerReader,
  createInformationalLimit,
  type Informational,
} from './answer';
import { failureMessage, type AttemptOutcome, type FailureCause } from './attempt-outcome';
import { describeError, isHangUp } from './failure';
import { openGot } from './got-transport';
import type { AddressGuard } from './guard';
import { prepareHeaders } from './request-headers';
import type { JudgedRequest, OpenTransport, Sending, Transport } from './transport';

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
  /** The library that posts; got by default. */
  transport?: OpenTransport;
}

/** What an attempt needs from the client around it. */
interface Sender {
  transport: Transport;
  guard: AddressGuard;
}

/**
 * The HTTP client of deliveries and tests (docs/contract-webhooks.md#requests-to-receivers): guarded addresses, one deadline, no redirect followed, nothing inflated, an answer
 * read to 20,000 bytes, whatever library posts.
 */
export function createHttpClient(options: HttpClientOptions): HttpClient {
  const { guard, timeoutMs, maxSocketsPerHost = 64, transport: open = openGot } = options;
  const running = new Set<Attempt>();
  // At once: compiling a client's modules would hold the event loop in the middle of the first attempts.
  const sender: Promise<Sender> = open({ lookups: guard.lookups, maxSocketsPerHost }).then(
    (transport) => ({ transport, guard })
  );
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
      sender.then(
        ({ transport }) => transport.close(),
        () => {}
      );
    },
  };
}

/** One request on its way; the first thing to settle it wins, the rest is ignored. */
class Attempt {
  private readonly startedAt = performance.now();
  private readonly deadline: NodeJS.Timeout;
  private readonly outcome: Promise<AttemptOutcome>;
  private resolve: (outcome: AttemptOutcome) => void = () => undefined;
  private settled = false;
  private sending: Sending | undefined;
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
    const { transport, guard } = await sender;
    const inspection = await guard.inspectUrl(url);
    if (inspection.verdict !== 'allowed') {
      // A refused literal and a refused name read the same in the log.
      return inspection.verdict === 'refused'
        ? this.fail('blocked_address')
        : this.fail('invalid_request', inspection.reason);
    }
    // got takes it for the name of a socket file.
    if (inspection.url.hostname === 'unix') return this.fail('invalid_request');

    const { headers } = prepared;
    const { localAllowed } = inspection;
    if (!this.settled) {
      this.send(transport, { url: inspection.url, headers, body, localAllowed, fresh: false });
    }
  }

  private send(transport: Transport, request: JudgedRequest): void {
    this.sending = transport.send(request, {
      informational: (told) => this.informed(told),
      head: (head) => (this.answer = createAnswerReader(head)),
      data: (chunk) => {
        if (this.answer?.push(chunk)) this.finish();
      },
      end: () => this.finish(),
      error: (error, wasReused) => {
        if (this.settled) return;
        // A receiver may close an idle connection at the moment we use it. That is no failure of the
        // receiver; a delivery that arrives twice by this has the same id both times.
        const wasIdle = wasReused && !this.answer && isHangUp(error);
        if (wasIdle && !request.fresh) this.send(transport, { ...request, fresh: true });
        else this.failWith(error);
      },
    });
  }

  private informed(told: Informational): void {
    if (!this.settled && this.isTooMuch(told)) {
      this.fail('invalid_response', 'The receiver sent informational answers without end.');
    }
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
    this.sending?.destroy();
  }
}
