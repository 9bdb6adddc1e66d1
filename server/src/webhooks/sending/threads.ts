import dns from 'node:dns';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Post, Posted, PosterOptions } from './post';
import type { Answers, Batch, NameSettings } from './thread';

const FILE = path.join(__dirname, 'thread.js');

interface ThreadOptions extends PosterOptions {
  /** Told why a thread died. */
  died(error: unknown): void;
}

/** A thread that makes attempts, started anew by the next one after it has died. */
class SendingThread {
  private worker: Worker | null;
  private readonly underWay = new Map<number, (posted: Posted | null) => void>();
  private waiting: [number, Post][] = [];
  private last = 0;
  /** What the thread knows of how names are resolved, as JSON. */
  private names = '';

  constructor(private readonly options: ThreadOptions) {
    // At once: an attempt should not wait until its modules are compiled.
    this.worker = this.start();
  }

  get busy(): number {
    return this.underWay.size;
  }

  post(post: Post): Promise<Posted | null> {
    return new Promise((resolve) => {
      this.last += 1;
      this.underWay.set(this.last, resolve);
      // All of one turn of the event loop are one message, in which each webhook's secrets are once.
      if (this.waiting.push([this.last, post]) === 1) setImmediate(() => this.handOver());
    });
  }

  close(): void {
    void this.worker?.terminate();
  }

  private handOver(): void {
    const worker = (this.worker ??= this.start());
    worker.ref();
    const names: NameSettings = { servers: dns.getServers(), order: dns.getDefaultResultOrder() };
    const said = JSON.stringify(names);
    const batch: Batch = { posts: this.waiting, ...(said !== this.names && { names }) };
    this.names = said;
    this.waiting = [];
    worker.postMessage(batch);
  }

  private start(): Worker {
    const { died, ...workerData } = this.options;
    const worker = new Worker(FILE, { workerData, name: 'switchboard' });
    // The process may end while nothing is under way.
    worker.unref();
    worker.on('message', (answers: Answers) => {
      for (const [number, posted] of answers) this.end(number, posted);
    });
    worker.once('error', died);
    worker.once('exit', () => {
      this.worker = null;
      this.names = '';
      for (const number of [...this.underWay.keys()]) this.end(number, null);
    });
    return worker;
  }

  private end(number: number, posted: Posted | null): void {
    this.underWay.get(number)?.(posted);
    this.underWay.delete(number);
    if (this.busy === 0) this.worker?.unref();
  }
}

/** Makes attempts in threads of their own: got takes more of the processor than all else of a delivery. */
export class SendingThreads {
  private readonly threads: SendingThread[];

  constructor(count: number, options: ThreadOptions) {
    this.threads = Array.from({ length: count }, () => new SendingThread(options));
  }

  /** @returns null if the thread died meanwhile: nobody knows whether the attempt was made */
  post(post: Post): Promise<Posted | null> {
    const idlest = this.threads.reduce((one, other) => (other.busy < one.busy ? other : one));
    return idlest.post(post);
  }

  /** Ends what is under way. */
  close(): void {
    for (const thread of this.threads) thread.close();
  }
}
