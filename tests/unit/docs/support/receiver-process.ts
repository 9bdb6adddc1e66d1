import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';

const EXAMPLES = path.resolve(__dirname, '../../../../examples/receivers');

/** An example of `examples/receivers` and how it is started. */
export interface Example {
  folder: string;
  /** A program and arguments that succeed where the language is on the machine. */
  probe: [string, ...string[]];
  /** Whether it stores events as files in `EVENTS_FOLDER`. */
  storesFiles: boolean;
  command(context: { file: string; scratch: string }): string[];
  file: string;
}

export const EXAMPLE_RECEIVERS: readonly Example[] = [
  {
    folder: 'node',
    file: 'receiver.mjs',
    probe: [process.execPath, '--version'],
    storesFiles: true,
    command: ({ file }) => [process.execPath, file],
  },
  {
    folder: 'node-standardwebhooks',
    file: 'receiver.mjs',
    probe: [process.execPath, '--version'],
    storesFiles: false,
    command: ({ file }) => [process.execPath, file],
  },
  {
    folder: 'python',
    file: 'receiver.py',
    probe: ['python3', '--version'],
    storesFiles: true,
    command: ({ file }) => ['python3', file],
  },
  {
    folder: 'php',
    file: 'receiver.php',
    probe: ['php', '--version'],
    storesFiles: true,
    command: ({ file }) => ['php', file],
  },
  {
    folder: 'go',
    file: 'receiver.go',
    probe: ['go', 'version'],
    storesFiles: true,
    command({ file, scratch }) {
      const binary = path.join(scratch, 'receiver');
      const built = spawnSync('go', ['build', '-o', binary, file], { encoding: 'utf8' });
      if (built.status !== 0) throw new Error(`go build failed: ${built.stderr}`);
      return [binary];
    },
  },
  {
    folder: 'csharp',
    file: 'Receiver.cs',
    probe: ['bash', '-c', 'mcs --version && mono --version'],
    storesFiles: true,
    command({ file, scratch }) {
      const binary = path.join(scratch, 'receiver.exe');
      const args = ['-warnaserror', '-r:System.Runtime.Serialization', `-out:${binary}`, file];
      const built = spawnSync('mcs', args, { encoding: 'utf8' });
      if (built.status !== 0) throw new Error(`mcs failed: ${built.stdout}${built.stderr}`);
      return ['mono', binary];
    },
  },
];

/** Whether the language is on this machine. With `REQUIRE_ALL=1` it has to be. */
export const isAvailable = ({ probe: [program, ...args] }: Example): boolean =>
  process.env.REQUIRE_ALL === '1' ||
  spawnSync(program, args, { stdio: 'ignore', timeout: 20_000 }).status === 0;

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
  /** What it printed so far. */
  output(): string;
  /** The events it stored: file name and bytes. */
  stored(): Map<string, Buffer>;
  stop(): Promise<void>;
}

/** A folder of its own for one run, and what to run there. */
const prepare = (example: Example) => {
  const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'switchboard-receiver-'));
  const events = path.join(scratch, 'events');
  fs.mkdirSync(events);
  const file = path.join(EXAMPLES, example.folder, example.file);
  const [program, ...args] = example.command({ file, scratch }) as [string, ...string[]];
  return { scratch, events, program, args };
};

/**
 * Starts an example with one secret after the other (undefined: the variable is not set at all),
 * each until it ends or listens.
 * @returns for each the exit code, or 'listens'
 */
export const tryToStart = async (
  example: Example,
  secrets: readonly (string | undefined)[]
): Promise<(number | 'listens' | null)[]> => {
  const { scratch, events, program, args } = prepare(example);
  const outcomes: (number | 'listens' | null)[] = [];
  for (const secret of secrets) {
    const port = await freePort();
    const { WEBHOOK_SECRET: _, ...env } = process.env;
    const child = spawn(program, args, {
      env: {
        ...env,
        ...(secret !== undefined && { WEBHOOK_SECRET: secret }),
        PORT: String(port),
        EVENTS_FOLDER: events,
      },
      stdio: 'ignore',
    });
    const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    let listens = false;
    const until = Date.now() + 30_000;
    while (child.exitCode === null && !listens && Date.now() < until) {
      listens = await isListening(port);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    outcomes.push(listens ? 'listens' : child.exitCode);
    child.kill('SIGKILL');
    await exited;
  }
  fs.rmSync(scratch, { recursive: true, force: true });
  return outcomes;
};

/** Starts an example in a process of its own and waits until it listens. */
export const startReceiver = async (example: Example, secret: string): Promise<RunningReceiver> => {
  const { scratch, events, program, args } = prepare(example);
  const port = await freePort();
  let printed = '';
  const child: ChildProcess = spawn(program, args, {
    env: { ...process.env, WEBHOOK_SECRET: secret, PORT: String(port), EVENTS_FOLDER: events },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      printed += chunk.toString();
    });
  }
  const until = Date.now() + 30_000;
  while (!(await isListening(port))) {
    if (child.exitCode !== null || Date.now() > until) {
      child.kill('SIGKILL');
      throw new Error(`${example.folder} does not listen: ${printed}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return {
    url: `http://127.0.0.1:${port}/hooks`,
    output: () => printed,
    stored: () =>
      new Map(
        fs.readdirSync(events).map((name) => [name, fs.readFileSync(path.join(events, name))])
      ),
    async stop() {
      child.kill('SIGKILL');
      await exited;
      fs.rmSync(scratch, { recursive: true, force: true });
    },
  };
};
