import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { freePort } from '../../support/site-process';

/** A PostgreSQL server of a test's own, which it may stop, kill and starve. */
export interface OwnPostgres {
  readonly port: number;
  start(): void;
  /** @param mode `immediate`: as a crash does */
  stop(mode: 'fast' | 'immediate'): void;
  /** Whether it answers. */
  answers(): boolean;
}

const outputOf = (command: string, args: string[]): string =>
  spawnSync(command, args, { encoding: 'utf8' }).stdout?.trim() ?? '';

const programs = (): string | null => {
  const root = '/usr/lib/postgresql';
  const versions = fs.existsSync(root) ? fs.readdirSync(root).sort((a, b) => +b - +a) : [];
  const folders = versions.map((version) => path.join(root, version, 'bin'));
  return folders.find((folder) => fs.existsSync(path.join(folder, 'initdb'))) ?? null;
};

/** The server refuses to run as root: it needs a user of its own, whose name is `postgres`. */
const user = (): { uid: number; gid: number } | null => {
  const [uid, gid] = ['-u', '-g'].map((flag) =>
    Number.parseInt(outputOf('id', [flag, 'postgres']))
  );
  return uid && gid ? { uid, gid } : null;
};

/** Whether such a server can be made here: the programs, their user, and the right to become it. */
export const canOwnPostgres = (): boolean =>
  process.getuid?.() === 0 && programs() !== null && user() !== null;

/**
 * Makes a server with an empty database `soak`, and starts it.
 * @param folder empty, where all of it lies; the server's user becomes its owner
 */
export const createOwnPostgres = async (folder: string): Promise<OwnPostgres> => {
  const bin = programs();
  const owner = user();
  if (!bin || !owner) throw new Error('there is no PostgreSQL to start');
  const port = await freePort();
  const data = path.join(folder, 'data');
  fs.chownSync(folder, owner.uid, owner.gid);
  fs.chmodSync(folder, 0o700);
  const run = (program: string, args: string[]): void => {
    const { status, stderr, stdout, error } = spawnSync(path.join(bin, program), args, {
      ...owner,
      cwd: folder,
      encoding: 'utf8',
      // `pg_ctl` hands its output on to the server, which would keep it open.
      stdio: program === 'pg_ctl' ? 'ignore' : 'pipe',
    });
    if (status !== 0) throw new Error(`${program}: ${error?.message ?? ''}${stdout}${stderr}`);
  };
  run('initdb', ['-D', data, '-U', 'postgres', '--auth=trust', '--wal-segsize=1', '--no-sync']);
  const settings = {
    port,
    listen_addresses: "'127.0.0.1'",
    unix_socket_directories: `'${folder}'`,
    max_connections: 40,
    shared_buffers: "'16MB'",
    min_wal_size: "'4MB'",
    max_wal_size: "'16MB'",
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}\n`);
  fs.appendFileSync(path.join(data, 'postgresql.conf'), lines.join(''));
  const server: OwnPostgres = {
    port,
    start: () => run('pg_ctl', ['-D', data, '-w', '-t', '60', '-l', '/dev/null', 'start']),
    stop: (mode) => run('pg_ctl', ['-D', data, '-w', '-t', '60', '-m', mode, 'stop']),
    answers: () =>
      spawnSync(path.join(bin, 'pg_isready'), ['-h', '127.0.0.1', '-p', String(port), '-q'])
        .status === 0,
  };
  server.start();
  run('psql', [
    '-h',
    '127.0.0.1',
    '-p',
    String(port),
    '-U',
    'postgres',
    '-qc',
    'CREATE DATABASE soak',
  ]);
  return server;
};
