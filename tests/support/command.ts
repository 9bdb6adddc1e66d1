import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import { forgetChild, isRunning, watchChild } from './leak-check';
import { ROOT, SITE_DIR } from './paths';
import { waitFor } from './wait';

export interface CommandOptions {
  /** `site.env()` and what differs from it. */
  env?: NodeJS.ProcessEnv;
  cwd?: string;
  /** What is typed; nothing by default. */
  input?: string;
  /** The name of a file in `bin/`. */
  file?: string;
}

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

const start = (
  words: string[],
  { env = {}, cwd = SITE_DIR, file = 'switchboard' }: CommandOptions
): { child: ChildProcess; output: Pick<Ended, 'stdout' | 'stderr'>; ended: Promise<Ended> } => {
  const child = spawn(process.execPath, [path.join(ROOT, `bin/${file}.js`), ...words], {
    cwd,
    env: { ...process.env, NODE_OPTIONS: '', ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  watchChild(child);
  const output = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk) => (output.stdout += chunk));
  child.stderr.on('data', (chunk) => {
    output.stderr += chunk;
    if (process.env.SITE_LOG === '1') process.stderr.write(chunk);
  });
  child.stdin.on('error', () => {});
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      forgetChild(child);
      resolve({ code, signal, ...output });
    });
  });
  return { child, output, ended };
};

/** Runs the command `switchboard` to its end, in the folder of the tests' site. */
export const runCommand = (words: string[], options: CommandOptions = {}): Promise<Ended> => {
  const { child, ended } = start(words, options);
  child.stdin?.end(options.input ?? '');
  return ended;
};

export interface Worker {
  readonly pid: number | undefined;
  readonly running: boolean;
  /** Everything it printed to standard output so far. */
  said(): string;
  /** What the site in it logged, and its complaints. */
  log(): string;
  /** Sends a signal, `SIGTERM` by default, and resolves when the process has ended. */
  stop(signal?: NodeJS.Signals): Promise<Ended>;
  /** Resolves when the process has ended by itself. */
  ended: Promise<Ended>;
}

/** Starts `switchboard worker`, and does not wait for it. */
export const spawnWorker = (env: NodeJS.ProcessEnv, words: string[] = []): Worker => {
  const { child, output, ended } = start(['worker', ...words], { env });
  return {
    pid: child.pid,
    get running() {
      return isRunning(child);
    },
    said: () => output.stdout,
    log: () => output.stderr,
    stop(signal = 'SIGTERM') {
      child.kill(signal);
      return ended;
    },
    ended,
  };
};

/** Starts `switchboard worker`, and resolves once it works. */
export const startWorker = async (
  env: NodeJS.ProcessEnv,
  words: string[] = []
): Promise<Worker> => {
  const worker = spawnWorker(env, words);
  await waitFor(
    () => {
      const works = /process \d+ (sends|applies)/.test(worker.said() + worker.log());
      if (!works && !worker.running) throw new Error(`the worker ended: ${worker.log()}`);
      return works;
    },
    60_000,
    'the worker to work'
  );
  return worker;
};
