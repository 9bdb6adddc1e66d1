import { fork } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { type Answer, send } from '../../support/http';
import { watchChild } from '../../support/leak-check';
import { ROOT, SCRATCH } from '../../support/paths';
import { freePort } from '../../support/site-process';

export interface Login {
  email: string;
  password: string;
}

/** The site that `npm start` runs, with a database and ports of its own. */
export interface Playground {
  readonly url: string;
  /** The first super admin. */
  readonly login: Login;
  /** A request of the admin API in that administrator's name. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into answers
  admin(method: string, route: string, body?: unknown): Promise<Answer<any>>;
  /** Makes an administrator with this role and resolves with how they log in. */
  createUser(role: string): Promise<Login>;
  stop(): Promise<void>;
}

/** The first start after a change builds the plugin and the admin panel. */
const START_TIMEOUT_MS = 600_000;

/** @param webhooks options of the plugin, over those of the playground. */
export const startPlayground = async (
  webhooks: Record<string, unknown> = {}
): Promise<Playground> => {
  const [port, receiverPort] = [await freePort(), await freePort()];
  const data = path.join(SCRATCH, 'e2e', crypto.randomBytes(4).toString('hex'));
  const { NODE_OPTIONS: _jest, JEST_WORKER_ID: _worker, NODE_ENV: _env, ...env } = process.env;
  const child = fork(path.join(ROOT, 'scripts/start.mjs'), ['--fresh'], {
    cwd: ROOT,
    env: {
      ...env,
      PORT: String(port),
      RECEIVER_PORT: String(receiverPort),
      PLAYGROUND_DATA: data,
      SWITCHBOARD_WEBHOOKS: JSON.stringify(webhooks),
    } as unknown as NodeJS.ProcessEnv,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    execArgv: [],
  });
  watchChild(child);
  let output = '';
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  await new Promise<void>((resolve, reject) => {
    const fail = (why: string) => reject(new Error(`${why}\n${output.slice(-4000)}`));
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      fail('The playground did not start in time.');
    }, START_TIMEOUT_MS);
    const collect = (chunk: Buffer) => {
      output += chunk.toString('utf8');
      if (!output.includes('The playground is ready')) return;
      clearTimeout(timer);
      resolve();
    };
    child.stdout?.on('data', collect);
    child.stderr?.on('data', collect);
    void ended.then(() => {
      clearTimeout(timer);
      fail('The playground ended.');
    });
  });

  const url = `http://127.0.0.1:${port}`;
  const { login } = JSON.parse(fs.readFileSync(path.join(data, 'playground.json'), 'utf8')) as {
    login: Login;
  };
  const post = (route: string, body: unknown) =>
    send<{ data: Record<string, string> }>({ method: 'POST', url: `${url}${route}`, body });
  const { token } = (await post('/admin/login', login)).body.data;
  const admin: Playground['admin'] = (method, route, body) =>
    send({ method, url: `${url}${route}`, headers: { authorization: `Bearer ${token}` }, body });

  return {
    url,
    login,
    admin,
    async createUser(role) {
      const roles = (await admin('GET', '/admin/roles')).body.data as {
        id: number;
        name: string;
      }[];
      const found = roles.find(({ name }) => name === role);
      if (!found) throw new Error(`No role ${role}`);
      const email = `user-${crypto.randomBytes(4).toString('hex')}@example.test`;
      const password = `Password1-${crypto.randomBytes(4).toString('hex')}`;
      const names = { firstname: 'Eve', lastname: role };
      const user = { ...names, email, roles: [found.id] };
      const { registrationToken } = (await admin('POST', '/admin/users', user)).body.data;
      await post('/admin/register', { registrationToken, userInfo: { ...names, password } });
      return { email, password };
    },
    async stop() {
      child.kill('SIGTERM');
      await ended;
      fs.rmSync(data, { recursive: true, force: true });
    },
  };
};
