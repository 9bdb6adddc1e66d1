import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { type AdminAction, adminActionId } from '../../../shared/contracts/permissions';
import { runSql } from '../../support/databases';
import { type Answer, send } from '../../support/http';
import { SCRATCH } from '../../support/paths';
import { startPlayground as start } from '../../support/playground';
import { locked } from '../../support/templates';
import { tidyScratch } from '../../support/tidy';
import { waitFor } from '../../support/wait';

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
  /** Makes a role that may do only this; actions of the plugin, such as `webhooks.read`. */
  createRole(name: string, actions: readonly AdminAction[]): Promise<void>;
  /** Its SQLite database. */
  readonly databaseFile: string;
  /** `kill -9` of the site's process. */
  kill(): Promise<void>;
  /** Starts again on the same data and port, after a kill. */
  again(): Promise<void>;
  stop(): Promise<void>;
}

/** Of this run of jest, whose workers share it; what is left of it goes with the playgrounds. */
const BEGUN = path.join(SCRATCH, 'playgrounds', `${process.ppid}-begun`);

const nothingPending = async (databaseFile: string): Promise<boolean> =>
  (
    await runSql(
      'sqlite',
      databaseFile,
      "SELECT id FROM switchboard_deliveries WHERE status = 'pending' LIMIT 1"
    )
  ).length === 0;

/**
 * What the first start of a playground leaves. It makes a hundred tables, the first administrator and
 * the seed, and takes twice the processor time of one that finds them.
 */
const begunPlayground = async (): Promise<string> => {
  fs.mkdirSync(path.dirname(BEGUN), { recursive: true });
  await locked(`${BEGUN}.lock`, async () => {
    if (fs.existsSync(BEGUN)) return;
    tidyScratch();
    const first = await start();
    await waitFor(() => nothingPending(path.join(first.dataFolder, 'data.db')));
    await first.interrupt();
    fs.renameSync(first.dataFolder, BEGUN);
  });
  return BEGUN;
};

/**
 * @param webhooks options of the plugin, over those of the playground.
 * @param anew a first start, for what the seed leaves with these options
 */
export const startPlayground = async (
  webhooks: Record<string, unknown> = {},
  { anew = false } = {}
): Promise<Playground> => {
  const from = anew ? undefined : await begunPlayground();
  let running = await start({ SWITCHBOARD_WEBHOOKS: JSON.stringify(webhooks) }, from);
  const { siteUrl: url, login } = running;
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
    async createRole(name, actions) {
      const { id } = (await admin('POST', '/admin/roles', { name, description: name })).body.data;
      const permissions = actions.map((action) => ({
        action: adminActionId(action),
        subject: null,
        properties: {},
        conditions: [],
      }));
      await admin('PUT', `/admin/roles/${id}/permissions`, { permissions });
    },
    databaseFile: path.join(running.dataFolder, 'data.db'),
    kill: () => running.killSite(),
    async again() {
      running = await running.again();
    },
    stop: () => running.stop(),
  };
};
