import { spawnSync } from 'node:child_process';
import net from 'node:net';
import path from 'node:path';

/** `npm start` where its addresses cannot be had: it says why before it installs or builds. */

let taken: net.Server;
let port: number;
const free: number[] = [];

const listen = () =>
  new Promise<net.Server>((resolve) => {
    const server = net.createServer();
    server.listen(0, '127.0.0.1', () => resolve(server));
  });
const portOf = (server: net.Server) => (server.address() as net.AddressInfo).port;
const close = (server: net.Server) => new Promise((resolve) => server.close(resolve));

beforeAll(async () => {
  taken = await listen();
  port = portOf(taken);
  const others = [await listen(), await listen()];
  free.push(...others.map(portOf));
  await Promise.all(others.map(close));
});
afterAll(() => close(taken));

const run = (args: string[], env: Record<string, string> = {}) =>
  spawnSync(process.execPath, [path.resolve('scripts/start.mjs'), ...args], {
    env: { PORT: String(free[0]), RECEIVER_PORT: String(free[1]), ...env },
    encoding: 'utf8',
    timeout: 20_000,
  });
const start = (env: Record<string, string>) => {
  const { status, stderr } = run([], env);
  return { status, said: stderr.trim() };
};

it.each([
  ['PORT', 'the site'],
  ['RECEIVER_PORT', 'the receiver'],
  ['TILL_PORT', 'the till'],
])('says which program wants the port where %s is in use', (variable, what) => {
  const { status, said } = start({ [variable]: String(port) });
  expect(said).toContain(`Port ${port}, which ${what} wants, is in use on 127.0.0.1.`);
  expect(said).toContain(`${variable}=${port + 1} npm start`);
  expect(status).toBe(1);
});

it('says which two programs were given one port', () => {
  expect(start({ TILL_PORT: String(free[0]) })).toEqual({
    status: 1,
    said: `TILL_PORT is ${free[0]}, which is the port of the site.`,
  });
});

it.each(['abc', '0', '65536', ''])('says that %j is no port', (value) => {
  expect(start({ TILL_PORT: value })).toEqual({
    status: 1,
    said: `TILL_PORT is not a port: ${value}`.trim(),
  });
});

it('says that HOST is not this computer, and not that a port is in use', () => {
  // A documentation address: no computer has it.
  const { status, said } = start({ HOST: '192.0.2.1' });
  expect(said).toContain('HOST=192.0.2.1 (EADDRNOTAVAIL)');
  expect(status).toBe(1);
});

it('prints its flags for --help, and starts nothing', () => {
  // Where it would start, it would say that the port is in use.
  const { status, stdout, stderr } = run(['--help'], { PORT: String(port) });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout).toContain('--engine database|bullmq');
});

it.each([
  [['--engine', 'redis'], 'There is no engine "redis": --engine takes database or bullmq.'],
  [
    ['--frehs'],
    'npm start cannot take --frehs. It takes --fresh, --engine database|bullmq and --help.',
  ],
])('refuses %j before anything starts', (args, message) => {
  const { status, stdout, stderr } = run(args);
  expect({ status, stdout, said: stderr.trim() }).toEqual({ status: 1, stdout: '', said: message });
});
