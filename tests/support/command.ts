import { type ChildProcess, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { count, timed } from './costs';
import { forgetChild, isRunning, watchChild } from './leak-check';
import { ROOT, SITE_DIR } from './paths';
import { staysInItsSite } from './site-process';
import { addSpare, isPlainEnv, takeProcess } from './spare-processes';
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
  count('processes');
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

/** Runs a command in a process of its own, as whoever types it does. */
export const spawnCommand = (words: string[], options: CommandOptions = {}): Promise<Ended> => {
  const { child, ended } = start(words, options);
  child.stdin?.end(options.input ?? '');
  return timed('commands', () => ended);
};

/** What the environment of a site's process has beside what nothing but a boot looks at. */
const OF_ANY_SITE =
  /^(BROWSER|HOST|NODE_OPTIONS|PORT|PUBLIC_URL|SITE_(IS_COPY|PUBLIC_DIR|SETUP_FILES)|STRAPI_\w+)$/;

/** What a command's process is given that this process does not have. */
const ownEnv = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(
    Object.entries(env).filter(
      ([name, value]) => value !== process.env[name] && !OF_ANY_SITE.test(name)
    )
  );

/** Runs a command where the host's modules are loaded already, which is most of its time. */
const runInSpare = (
  program: 'switchboard' | 'strapi',
  words: string[],
  env: NodeJS.ProcessEnv
): Promise<Ended> =>
  new Promise((resolve, reject) => {
    const child = takeProcess(env, true);
    let printed = '';
    const collect = (chunk: Buffer) => (printed += chunk);
    child.stdout?.on('data', collect);
    child.stderr?.on('data', collect);
    child.once('close', () =>
      reject(new Error(`${program} ${words.join(' ')} ended its process: ${printed}`))
    );
    child.on('message', ({ ended }: { ended?: Omit<Ended, 'signal'> }) => {
      if (!ended) return;
      addSpare(child);
      if (process.env.SITE_LOG === '1') process.stderr.write(ended.stderr);
      resolve({ signal: null, ...ended });
    });
    child.send({ command: { program, words, env } });
  });

/**
 * Runs the command `switchboard` to its end, in the folder of the tests' site: in a process that ran
 * something else before, unless this one is to be of another kind. What a process adds, a signal or
 * what is typed, is `spawnCommand`'s.
 */
export const runCommand = (words: string[], options: CommandOptions = {}): Promise<Ended> => {
  const { env = {}, cwd, input, file } = options;
  const isPlain = !cwd && input === undefined && !file && isPlainEnv(ownEnv(env));
  if (!isPlain) return spawnCommand(words, options);
  const whole = { ...process.env, NODE_OPTIONS: '', ...env };
  return timed('commands', () => runInSpare('switchboard', words, whole));
};

/** Runs a command of the host's own, such as `export`, in the folder of the tests' site. */
export const runHostCommand = (words: string[], env: NodeJS.ProcessEnv): Promise<Ended> =>
  timed('commands', () =>
    runInSpare('strapi', words, { ...process.env, NODE_OPTIONS: '', ...env })
  );

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

const workerOf = (
  child: ChildProcess,
  output: Pick<Ended, 'stdout' | 'stderr'>,
  ended: Promise<Ended>
): Worker => {
  let running = true;
  void ended.finally(() => (running = false)).catch(() => {});
  return {
    pid: child.pid,
    get running() {
      return running && isRunning(child);
    },
    said: () => output.stdout,
    log: () => output.stderr,
    stop(signal = 'SIGTERM') {
      // Where it has ended, the process may be another site's by now.
      if (running) child.kill(signal);
      return ended;
    },
    ended,
  };
};

/** Starts `switchboard worker` in a process of its own, and does not wait for it. */
export const spawnWorker = (env: NodeJS.ProcessEnv, words: string[] = []): Worker => {
  const { child, output, ended } = start(['worker', ...words], { env });
  return workerOf(child, output, ended);
};

/** Starts it where the host's modules are loaded already. */
const workInSpare = (env: NodeJS.ProcessEnv, words: string[]): Worker => {
  const child = takeProcess(env, true);
  const output = { stdout: '', stderr: '' };
  child.stderr?.on('data', (chunk: Buffer) => (output.stderr += chunk));
  const ended = new Promise<Ended>((resolve) => {
    child.on('message', ({ printed, ended: end }: { printed?: typeof output; ended?: Ended }) => {
      const { stdout = '', stderr = '' } = printed ?? {};
      output.stdout += stdout;
      output.stderr += stderr;
      if (process.env.SITE_LOG === '1') process.stderr.write(stderr);
      if (!end) return;
      // What could not start is half loaded.
      if (end.code === 0) addSpare(child);
      else child.kill('SIGKILL');
      resolve({ code: end.code, signal: null, ...output });
    });
    child.once('close', (code, signal) => resolve({ code, signal, ...output }));
  });
  child.send({ command: { program: 'worker', words: ['worker', ...words], env } });
  return workerOf(child, output, ended);
};

/** Whether the process of such a worker is like any other's afterwards: a server for health stays. */
const leavesNothing = (env: NodeJS.ProcessEnv, words: string[]): boolean =>
  isPlainEnv(ownEnv(env)) &&
  !words.includes('--health-port') &&
  (env.SITE_SETUP_FILES ?? '')
    .split(path.delimiter)
    .filter(Boolean)
    .every((file) => staysInItsSite(fs.readFileSync(file, 'utf8')));

/**
 * Starts `switchboard worker`, and resolves once it works. Where that leaves nothing behind, it is in a
 * process that ran something else before, and which it gives back when `SIGTERM` stops it.
 */
export const startWorker = async (
  env: NodeJS.ProcessEnv,
  words: string[] = []
): Promise<Worker> => {
  const isPlain = leavesNothing(env, words);
  const worker = isPlain
    ? workInSpare({ ...process.env, NODE_OPTIONS: '', ...env }, words)
    : spawnWorker(env, words);
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
