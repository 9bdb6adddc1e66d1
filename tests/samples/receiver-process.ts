import { type ChildProcess, spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { install, type Sample } from '../support/receiver-samples';

const START_TIMEOUT_MS = 30_000;

const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = net.createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as net.AddressInfo;
      server.close(() => resolve(port));
    });
  });

const isListening = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });

export interface RunningReceiver {
  url: string;
  /** What it printed on its standard output so far. */
  output(): string;
  /** The events it stored: file name and bytes. */
  stored(): Map<string, Buffer>;
  stop(): Promise<void>;
}

interface Started {
  child: ChildProcess;
  port: number;
  output(): string;
  errors(): string;
  end(): Promise<void>;
}

const start = async (
  sample: Sample,
  events: string,
  secret: string | undefined
): Promise<Started> => {
  const { folder, command } = install(sample);
  const [program, ...args] = command as [string, ...string[]];
  const port = await freePort();
  const { WEBHOOK_SECRET: _, NODE_OPTIONS: __, ...env } = process.env;
  const child = spawn(program, args, {
    cwd: folder,
    env: {
      ...env,
      ...(secret !== undefined && { WEBHOOK_SECRET: secret }),
      NODE_ENV: 'production',
      NEXT_TELEMETRY_DISABLED: '1',
      PORT: String(port),
      EVENTS_FOLDER: events,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const printed = { output: '', errors: '' };
  child.stdout.on('data', (chunk: Buffer) => (printed.output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (printed.errors += chunk.toString()));
  return {
    child,
    port,
    output: () => printed.output,
    errors: () => printed.errors,
    async end() {
      child.kill('SIGKILL');
      await exited;
    },
  };
};

/** Until it ends or listens. */
const settled = async ({ child, port }: Started): Promise<'ended' | 'listens' | 'neither'> => {
  const until = Date.now() + START_TIMEOUT_MS;
  while (Date.now() < until) {
    if (child.exitCode !== null || child.signalCode !== null) return 'ended';
    if (await isListening(port)) return 'listens';
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return 'neither';
};

const makeEventsFolder = (): string =>
  fs.mkdtempSync(path.join(os.tmpdir(), 'switchboard-receiver-'));

/**
 * Starts a sample with one secret after the other (undefined: the variable is not set at all), each
 * until it ends or listens.
 * @returns for each the exit code, or 'listens', 'neither'
 */
export const tryToStart = async (
  sample: Sample,
  secrets: readonly (string | undefined)[]
): Promise<(number | string | null)[]> => {
  const events = makeEventsFolder();
  const outcomes: (number | string | null)[] = [];
  for (const secret of secrets) {
    const started = await start(sample, events, secret);
    const outcome = await settled(started);
    outcomes.push(outcome === 'ended' ? started.child.exitCode : outcome);
    await started.end();
  }
  fs.rmSync(events, { recursive: true, force: true });
  return outcomes;
};

/** Starts a sample in a process of its own and waits until it listens. */
export const startReceiver = async (sample: Sample, secret: string): Promise<RunningReceiver> => {
  const events = makeEventsFolder();
  const started = await start(sample, events, secret);
  const outcome = await settled(started);
  if (outcome !== 'listens') {
    await started.end();
    throw new Error(`${sample.folder} ${outcome}: ${started.output()}${started.errors()}`);
  }
  return {
    url: `http://127.0.0.1:${started.port}${sample.path}`,
    output: started.output,
    stored: () =>
      new Map(
        fs.readdirSync(events).map((name) => [name, fs.readFileSync(path.join(events, name))])
      ),
    async stop() {
      await started.end();
      fs.rmSync(events, { recursive: true, force: true });
    },
  };
};
