import { parentPort, Worker } from 'node:worker_threads';

interface ThreadOptions {
  /** The compiled module that runs in a thread, and calls `serveThread`. */
  file: string;
  workerData: unknown;
  /** A value for the threads, sent to each before its first work and when it has changed. */
  settings(): unknown;
  died(error: unknown): void;
}

/** A message to a thread: pieces of work, each with a number by which it is answered. */
interface Batch<In> {
  settings?: unknown;
  work: (readonly [number, In])[];
}

/** A thread's message: answers in the order in which the pieces ended. */
type Answers<Out> = (readonly [number, Out])[];

/** A thread. After a crash the next piece of work starts a new one. */
class Thread<In, Out> {
  private worker: Worker | null;
  private isEnded = false;
  readonly underWay = new Map<number, (answer: Out | null) => void>();
  private waiting: Batch<In>['work'] = [];
  private last = 0;
  /** The settings that it has, as JSON. */
  private has = '';

  constructor(private readonly options: ThreadOptions) {
    // At once: the first piece of work should not wait until its modules are compiled.
    this.worker = this.start();
  }

  run(one: In): Promise<Out | null> {
    if (this.isEnded) return Promise.resolve(null);
    return new Promise((resolve) => {
      this.last += 1;
      this.underWay.set(this.last, resolve);
      const isFirst = this.waiting.push([this.last, one]) === 1;
      // An idle thread begins at once; else all of one turn of the event loop are one message.
      if (this.underWay.size === 1) this.handOver();
      else if (isFirst) setImmediate(() => this.handOver());
    });
  }

  end(): void {
    this.isEnded = true;
    void this.worker?.terminate();
  }

  private handOver(): void {
    const work = this.waiting;
    if (work.length === 0) return;
    this.waiting = [];
    try {
      const worker = (this.worker ??= this.start());
      worker.ref();
      const settings = this.options.settings();
      const said = JSON.stringify(settings);
      worker.postMessage({ work, ...(said !== this.has && { settings }) });
      this.has = said;
    } catch (error) {
      // The system has no room for another thread.
      this.options.died(error);
      for (const [number] of work) this.settle(number, null);
    }
  }

  private start(): Worker {
    const { died, file, workerData } = this.options;
    const worker = new Worker(file, { workerData });
    // The process may end while nothing is under way.
    worker.unref();
    worker.on('message', (answers: Answers<Out>) => {
      for (const [number, answer] of answers) this.settle(number, answer);
    });
    worker.once('error', died);
    worker.once('exit', () => {
      this.worker = null;
      this.has = '';
      if (this.isEnded) this.waiting = [];
      // Work that was never handed over goes to the next worker.
      const kept = new Set(this.waiting.map(([number]) => number));
      for (const number of [...this.underWay.keys()])
        if (!kept.has(number)) this.settle(number, null);
    });
    return worker;
  }

  private settle(number: number, answer: Out | null): void {
    this.underWay.get(number)?.(answer);
    this.underWay.delete(number);
    if (this.underWay.size === 0) this.worker?.unref();
  }
}

/** Work of one kind in threads of its own, so that the site's is left to what needs the site. */
export class Threads<In, Out> {
  private readonly threads: Thread<In, Out>[];

  constructor(count: number, options: ThreadOptions) {
    this.threads = Array.from({ length: count }, () => new Thread<In, Out>(options));
  }

  /** Does a piece of work in the least busy thread. @returns null if the thread crashed: its progress is unknown */
  run(one: In): Promise<Out | null> {
    const [idlest] = [...this.threads].sort((a, b) => a.underWay.size - b.underWay.size);
    return idlest?.run(one) ?? Promise.resolve(null);
  }

  end(): void {
    for (const thread of this.threads) thread.end();
  }
}

/** Within a thread: does what it is given by `work`, which never rejects, and gives `settle` new settings. */
export const serveThread = <In, Out>(
  work: (one: In) => Promise<Out>,
  settle: (settings: unknown) => void
): void => {
  let ended: Answers<Out> = [];
  parentPort?.on('message', (batch: Batch<In>) => {
    if (batch.settings) settle(batch.settings);
    for (const [number, one] of batch.work) {
      void work(one).then((answer) => {
        // All that end in one turn of the event loop are one message.
        if (ended.push([number, answer]) > 1) return;
        setImmediate(() => {
          parentPort?.postMessage(ended);
          ended = [];
        });
      });
    }
  });
};

/** The answer for a piece of work that was given back, unchanged. */
export const UNBEGUN = 'unbegun';

/** A piece of work that has to wait for its turn. */
export interface Laned {
  lane: number;
  /** How much of its lane may be under way at once. */
  atOnce: number;
  waitMs: number;
}

interface Waiting<In, Out> {
  one: In;
  until: number;
  done: (answer: Out | typeof UNBEGUN) => void;
}

/** In a thread: keeps the next work at hand; returns what waited too long, is stale, or is of a lane that failed. */
export class Lanes<In extends Laned, Out extends { ok: boolean }> {
  private readonly underWay = new Map<number, number>();
  private waiting: Waiting<In, Out>[] = [];
  private working = 0;
  private timer: NodeJS.Timeout | undefined;
  private expiresAt = Number.POSITIVE_INFINITY;

  /** @param atOnce maximum of concurrent work @param work never rejects */
  constructor(
    private readonly atOnce: number,
    private readonly work: (one: In) => Promise<Out>,
    private readonly isStale: (one: In) => boolean
  ) {}

  run(one: In): Promise<Out | typeof UNBEGUN> {
    return new Promise((done) => {
      this.waiting.push({ one, until: performance.now() + one.waitMs, done });
      this.begin();
    });
  }

  private begin(): void {
    const now = performance.now();
    while (this.working < this.atOnce) {
      const next = this.waiting.find(({ one }) => this.countOf(one.lane) < one.atOnce);
      if (!next) break;
      this.waiting.splice(this.waiting.indexOf(next), 1);
      if (this.isStale(next.one) || next.until <= now) next.done(UNBEGUN);
      else void this.do(next);
    }
    const newest = this.waiting.at(-1);
    if (newest) this.expireAt(newest.until);
  }

  private expireAt(until: number): void {
    if (until >= this.expiresAt) return;
    clearTimeout(this.timer);
    this.expiresAt = until;
    this.timer = setTimeout(() => this.expire(), until - performance.now()).unref();
  }

  private async do({ one, done }: Waiting<In, Out>): Promise<void> {
    this.count(one.lane, 1);
    const answer = await this.work(one);
    this.count(one.lane, -1);
    done(answer);
    if (!answer.ok) this.giveBack((other) => other.one.lane === one.lane);
    // Not at once: the connection is free in the next turn.
    setImmediate(() => this.begin());
  }

  private countOf(lane: number): number {
    return this.underWay.get(lane) ?? 0;
  }

  private count(lane: number, more: number): void {
    const count = this.countOf(lane) + more;
    this.working += more;
    if (count > 0) this.underWay.set(lane, count);
    else this.underWay.delete(lane);
  }

  private expire(): void {
    const now = performance.now();
    this.giveBack(({ until }) => until <= now);
    this.expiresAt = Number.POSITIVE_INFINITY;
    this.expireAt(Math.min(...this.waiting.map(({ until }) => until)));
    this.begin();
  }

  private giveBack(isBack: (one: Waiting<In, Out>) => boolean): void {
    const back = this.waiting.filter(isBack);
    this.waiting = this.waiting.filter((one) => !back.includes(one));
    for (const { done } of back) done(UNBEGUN);
  }
}
