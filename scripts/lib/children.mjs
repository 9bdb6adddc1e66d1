import { fork } from 'node:child_process';

/** How long a child may take to end what it has under way. */
const STOP_TIMEOUT_MS = 30_000;

/**
 * Starts a Node program that says `{ ready: true, … }` over IPC, and resolves with it then.
 *
 * It gets a process group of its own: Ctrl-C in a terminal goes to the whole foreground group, and
 * the order of stopping (the site before its receiver) would be lost. A child also ends by itself
 * when the IPC channel closes, so none outlives this process, however that ends.
 * @returns {Promise<{ name: string, pid: number, message: object, send(message: object): void,
 *   stop(): Promise<void>, ended: Promise<string> }>}
 */
export const startChild = (name, file, { env, cwd } = {}) =>
  new Promise((resolve, reject) => {
    const child = fork(file, [], {
      cwd,
      env: { ...process.env, ...env },
      detached: true,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    let isReady = false;
    const ended = new Promise((settle) => {
      child.once('error', (error) => settle(error.message));
      child.once('exit', (code, signal) => settle(signal ?? `exit code ${code}`));
    });
    const running = () => child.exitCode === null && child.signalCode === null;
    const stop = async () => {
      if (!running()) return;
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
      await ended;
      clearTimeout(timer);
    };
    const send = (message) => {
      if (child.connected) child.send(message);
    };
    child.on('message', (message) => {
      if (!message?.ready || isReady) return;
      isReady = true;
      resolve({ name, pid: child.pid, message, send, stop, ended });
    });
    startChild.all.push({ name, stop });
    void ended.then((how) => {
      if (!isReady) reject(new Error(`The ${name} could not start (${how}).`));
    });
  });

/** Every child so far, oldest first. */
startChild.all = [];
