import type { ChildProcess } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import { isRunning } from './leak-check';
import { addSpare, takeProcess } from './spare-processes';

export const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = net.createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as net.AddressInfo;
      server.close(() => resolve(port));
    });
  });

/** A site's process could not start; `log` is everything that it printed. */
export class BootError extends Error {
  constructor(
    message: string,
    readonly log: string
  ) {
    super(`${message}\n${log.slice(-4000)}`);
    this.name = 'BootError';
  }
}

/** An operation failed inside the site; name, message, code and details are the site's. */
export class ControlError extends Error {
  readonly code?: string;
  readonly details?: unknown;
  constructor(
    op: string,
    cause: { name?: string; message?: string; code?: string; details?: unknown; stack?: string }
  ) {
    super(cause.message ?? `${op} failed`);
    this.name = cause.name ?? 'ControlError';
    this.code = cause.code;
    this.details = cause.details;
    if (cause.stack) this.stack = `${cause.stack}\n  by site.control('${op}')`;
  }
}

interface Reply {
  id?: number;
  ready?: boolean;
  retired?: boolean;
  /** The site did not start, and has ended what it began: why. */
  failed?: string;
  result?: unknown;
  error?: { name?: string; message?: string };
}

const BOOT_TIMEOUT_MS = 120_000;
const STOP_TIMEOUT_MS = 30_000;

/** The code that an operation runs in the site. */
const sourceOf = (op: string, args: unknown): string => {
  const { source = '', file } = args as { source?: string; file?: string };
  return op === 'run' && file ? fs.readFileSync(file, 'utf8') : source;
};

/**
 * What a test could leave behind for the next site of the process: more than its `strapi` holds.
 * What only reads, or is made anew at each boot, leaves nothing.
 */
const REACHES_THE_PROCESS = new RegExp(
  [
    /\bprototype\b/,
    // A clock that its test sets right again.
    /\bglobalThis\b(?!\.Date\b)/,
    /\bglobal\b(?!\.switchboardTestState)/,
    /\bprocess\b(?!\.(cpuUsage|cwd|env|execPath|memoryUsage|pid)\b)/,
    // A compiler may have renamed it.
    /\brequire\w*(?=[ \t]*\()(?!\(['"](@strapi\/(openapi|utils)|node:(child_process|crypto|http|timers\/promises))['"]\))/,
  ]
    .map(({ source }) => source)
    .join('|')
);

/** Whether code that a test sends, or has run at a boot, stays within the site that it is given. */
export const staysInItsSite = (source: string): boolean => !REACHES_THE_PROCESS.test(source);

/**
 * One operating-system process that runs tests/site. `isPlain`: its modules were loaded in an
 * environment like any other's, so another site may boot in it later, and this one may in another's.
 */
export class SiteProcess {
  private readonly child: ChildProcess;
  private readonly collect: (chunk: Buffer) => void;
  private output = '';
  private nextId = 1;
  private isRetired = false;
  private readonly waiting = new Map<
    number,
    { op: string; resolve: (value: unknown) => void; reject: (error: Error) => void }
  >();
  private readonly exited: Promise<void>;
  private readonly readied: Promise<void>;

  constructor(
    env: Record<string, string | undefined>,
    private isPlain = false
  ) {
    this.child = takeProcess(env as NodeJS.ProcessEnv, isPlain);
    this.collect = (chunk: Buffer) => {
      this.output += chunk.toString('utf8');
      if (process.env.SITE_LOG === '1') process.stderr.write(chunk);
    };
    this.child.stdout?.on('data', this.collect);
    this.child.stderr?.on('data', this.collect);
    this.exited = new Promise((resolve) => this.child.once('close', () => resolve()));
    this.readied = this.readiness();
    // One that was killed or stopped has another end than one that broke down.
    this.readied.then(
      () =>
        this.child.once('exit', (code) => {
          if (code) process.stderr.write(`A site broke down:\n${this.output.slice(-4000)}\n`);
        }),
      () => undefined
    );
    this.child.send({ boot: env });
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  get running(): boolean {
    return !this.isRetired && isRunning(this.child);
  }

  log(): string {
    return this.output;
  }

  ready(): Promise<void> {
    return this.readied;
  }

  private readiness(): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.child.kill('SIGKILL');
        reject(new BootError(`The site did not start in ${BOOT_TIMEOUT_MS} ms`, this.output));
      }, BOOT_TIMEOUT_MS);
      this.child.on('message', (reply: Reply) => {
        if (reply.ready) {
          clearTimeout(timer);
          resolve();
        } else if (reply.failed !== undefined) {
          clearTimeout(timer);
          this.output += reply.failed;
          this.release();
          reject(new BootError('The site did not start', this.output));
        } else this.settle(reply);
      });
      void this.exited.then(() => {
        clearTimeout(timer);
        reject(new BootError(`The site's process ended with ${this.ending()}`, this.output));
        for (const [id, { op }] of this.waiting)
          this.settle({ id, error: { message: `The site ended during ${op}: ${this.ending()}` } });
      });
    });
  }

  private ending(): string {
    return this.child.signalCode ?? `exit code ${this.child.exitCode}`;
  }

  private settle({ id, result, error }: Reply): void {
    const entry = id === undefined ? undefined : this.waiting.get(id);
    if (id === undefined || !entry) return;
    this.waiting.delete(id);
    if (error) entry.reject(new ControlError(entry.op, error));
    else entry.resolve(result);
  }

  control(op: string, args: unknown): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (!this.running || !this.child.connected) {
        reject(new Error(`The site is not running (${this.ending()}): ${op}`));
        return;
      }
      if (!staysInItsSite(sourceOf(op, args))) this.isPlain = false;
      const id = this.nextId++;
      this.waiting.set(id, { op, resolve, reject });
      this.child.send({ id, op, args }, (error) => {
        if (error) this.settle({ id, error });
      });
    });
  }

  /** Ends the site as an operator would, and keeps the process for another one where that is safe. */
  async retire(): Promise<void> {
    if (!this.isPlain || !this.running || !this.child.connected) return this.kill('SIGTERM');
    const isRetired = await new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(false), STOP_TIMEOUT_MS);
      const finish = (answer: boolean) => {
        clearTimeout(timer);
        resolve(answer);
      };
      this.child.on('message', ({ retired }: Reply) => retired && finish(true));
      void this.exited.then(() => finish(false));
      this.child.send({ retire: true }, (error) => error && finish(false));
    });
    if (!isRetired) return this.kill();
    this.release();
  }

  /** Gives the process up to another site, or ends it where it is like no other. */
  private release(): void {
    if (!this.isPlain) {
      this.child.kill('SIGKILL');
      return;
    }
    this.isRetired = true;
    addSpare(this.child);
  }

  /** Sends a signal and resolves when the process is gone. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    if (this.isRetired) return;
    if (this.running) this.child.kill(signal);
    const timer = setTimeout(() => this.child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await this.exited;
    clearTimeout(timer);
  }
}
