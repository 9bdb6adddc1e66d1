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

/** A thread. After it has died the next piece of work starts another one. */
class Thread<In, Out> {
  private worker: Worker | null;
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
    return new Promise((resolve) => {
      this.last += 1;
      this.underWay.set(this.last, resolve);
      // All of one turn of the event loop are one message.
      if (this.waiting.push([this.last, one]) === 1) setImmediate(() => this.handOver());
    });
  }

  end(): void {
    void this.worker?.terminate();
  }

  private handOver(): void {
    const worker = (this.worker ??= this.start());
    worker.ref();
    const settings = this.options.settings();
    const said = JSON.stringify(settings);
    worker.postMessage({ work: this.waiting, ...(said !== this.has && { settings }) });
    this.has = said;
    this.waiting = [];
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
      for (const number of [...this.underWay.keys()]) this.settle(number, null);
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

  /** Does a piece of work in the idlest thread. @returns null if the thread died: nobody knows how far it came */
  run(one: In): Promise<Out | null> {
    const [idlest] = [...this.threads].sort((a, b) => a.underWay.size - b.underWay.size);
    return idlest?.run(one) ?? Promise.resolve(null);
  }

  /** Ends the threads, whatever is under way. */
  end(): void {
    for (const thread of this.threads) thread.end();
  }
}

/**
 * Within a thread: does what it is given.
 * @param work never rejects
 * @param settle takes new settings
 */
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

/** The answer for a piece of work that was given back, and is as it was. */
export const UNBEGUN = 'unbegun';

/** A piece of work that has to wait for its turn. */
export interface Laned {
  lane: number;
  /** How much of its lane may be under way at once. */
  atOnce: number;
  /** How long it may wait, in milliseconds; then it is given back. */
  waitMs: number;
}

interface LanesOptions<In, Out> {
  /** How much may be under way at once. */
  atOnce: number;
  /** Never rejects. */
  work(one: In): Promise<Out>;
  /** True if a piece may not begin any more. */
  isStale(one: In): boolean;
  /** False if what waits in the lane is to be looked at again. */
  goesOn(answer: Out): boolean;
}

/**
 * Within a thread: keeps pieces of work that were handed over before they may begin, so that the next one
 * need not be waited for where it comes from.
 */
export class Lanes<In extends Laned, Out> {
  private readonly underWay = new Map<number, number>();
  private waiting: { one: In; until: number; done: (answer: Out | typeof UNBEGUN) => void }[] = [];
  private working = 0;
  private isLooking = false;
  private timer: NodeJS.Timeout | null = null;

  constructor(private readonly options: LanesOptions<In, Out>) {}

  run(one: In): Promise<Out | typeof UNBEGUN> {
    return new Promise((done) => {
      this.waiting.push({ one, until: performance.now() + one.waitMs, done });
      this.begin();
    });
  }

  private begin(): void {
    const { atOnce, isStale } = this.options;
    while (this.working < atOnce) {
      const at = this.waiting.findIndex(
        ({ one }) => (this.underWay.get(one.lane) ?? 0) < one.atOnce
      );
      const [next] = at < 0 ? [] : this.waiting.splice(at, 1);
      if (!next) break;
      if (isStale(next.one) || performance.now() > next.until) next.done(UNBEGUN);
      else void this.work(next.one).then(next.done);
    }
    const [first] = this.waiting;
    if (!first || this.timer) return;
    this.timer = setTimeout(() => {
      this.timer = null;
      const now = performance.now();
      this.giveBack(({ until }) => until <= now);
      this.begin();
    }, first.one.waitMs);
  }

  private async work(one: In): Promise<Out> {
    const { goesOn, work } = this.options;
    this.count(one.lane, 1);
    const answer = await work(one);
    this.count(one.lane, -1);
    if (!goesOn(answer)) this.giveBack((other) => other.one.lane === one.lane);
    // Not at once: the connection is free in the next turn.
    if (!this.isLooking) setImmediate(() => this.look());
    this.isLooking = true;
    return answer;
  }

  private look(): void {
    this.isLooking = false;
    this.begin();
  }

  private count(lane: number, more: number): void {
    this.working += more;
    const now = (this.underWay.get(lane) ?? 0) + more;
    if (now > 0) this.underWay.set(lane, now);
    else this.underWay.delete(lane);
  }

  private giveBack(which: (one: { one: In; until: number }) => boolean): void {
    const back = this.waiting.filter(which);
    this.waiting = this.waiting.filter((one) => !which(one));
    for (const { done } of back) done(UNBEGUN);
  }
}
