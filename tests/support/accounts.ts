import crypto from 'node:crypto';
import type { Answer } from './http';
import type { Site } from './site';

export const FIRST_ADMIN = {
  firstname: 'Ada',
  lastname: 'Admin',
  email: 'ada@example.test',
  password: 'Password1!ada',
};

const expectStatus = (answer: Answer, what: string, ...statuses: number[]): void => {
  if (statuses.includes(answer.status)) return;
  throw new Error(`${what}: ${answer.status} ${answer.text}`);
};

const unique = (): string => crypto.randomBytes(4).toString('hex');

const login = async (site: Site, email: string, password: string): Promise<string> => {
  const answer = await site.request('POST', '/admin/login', {
    as: 'nobody',
    body: { email, password },
  });
  expectStatus(answer, `login of ${email}`, 200);
  return answer.body.data.token;
};

/** Makes the first super admin through the host's API, or signs in where there is one. */
export const signInFirstAdmin = async (site: Site): Promise<string> => {
  const init = await site.request('GET', '/admin/init', { as: 'nobody' });
  expectStatus(init, 'GET /admin/init', 200);
  if (init.body.data.hasAdmin) return login(site, FIRST_ADMIN.email, FIRST_ADMIN.password);
  const answer = await site.request('POST', '/admin/register-admin', {
    as: 'nobody',
    body: FIRST_ADMIN,
  });
  expectStatus(answer, 'registering the first admin', 200, 201);
  return answer.body.data.token;
};

export interface ApiTokenOptions {
  type?: 'full-access' | 'read-only' | 'custom';
  /** Actions of a custom token, such as `plugin::switchboard.webhooks.find`. */
  permissions?: string[];
}

/** Makes an API token and resolves with its key, to be used as `{ as: { token } }`. */
export const createApiToken = async (
  site: Site,
  { type = 'full-access', permissions }: ApiTokenOptions = {}
): Promise<string> => {
  const answer = await site.request('POST', '/admin/api-tokens', {
    as: 'admin',
    body: {
      name: `${type} ${unique()}`,
      description: '',
      type,
      lifespan: null,
      ...(type === 'custom' ? { permissions: permissions ?? [] } : {}),
    },
  });
  expectStatus(answer, 'creating an API token', 200, 201);
  return answer.body.data.accessKey;
};

export const createFullAccessToken = (site: Site): Promise<string> => createApiToken(site);

export interface AdminUser {
  id: number;
  email: string;
  password: string;
  /** JWT, to be used as `{ as: { token } }`. */
  token: string;
}

/**
 * Makes an admin user and signs in.
 * @param role a role's name (`Editor`, `Author`, `CRM Manager`) or code.
 */
export const createAdminUser = async (
  site: Site,
  { role, more = [], email }: { role: string; more?: string[]; email?: string }
): Promise<AdminUser> => {
  const roles = await site.request('GET', '/admin/roles', { as: 'admin' });
  expectStatus(roles, 'GET /admin/roles', 200);
  const list = roles.body.data as { id: number; name: string; code: string }[];
  const ids = [role, ...more].map((wanted) => {
    const found = list.find((item) => item.name === wanted || item.code === wanted);
    if (found) return found.id;
    throw new Error(`No role "${wanted}"; there are ${list.map((r) => r.name).join(', ')}`);
  });
  const user = {
    email: email ?? `user-${unique()}@example.test`,
    password: `Password1!${unique()}`,
  };
  const created = await site.request('POST', '/admin/users', {
    as: 'admin',
    body: { firstname: 'Eve', lastname: role, email: user.email, roles: ids },
  });
  expectStatus(created, 'creating an admin user', 200, 201);
  const { id, registrationToken } = created.body.data;
  const registered = await site.request('POST', '/admin/register', {
    as: 'nobody',
    body: {
      registrationToken,
      userInfo: { firstname: 'Eve', lastname: role, password: user.password },
    },
  });
  expectStatus(registered, 'registering an admin user', 200, 201);
  return { id, ...user, token: registered.body.data.token };
};

/** Makes an admin role with these actions (`{ action, subject? }`) and resolves with its name. */
export const createAdminRole = async (
  site: Site,
  actions: (string | { action: string; subject?: string | null })[]
): Promise<string> => {
  const name = `Role ${unique()}`;
  const role = await site.request('POST', '/admin/roles', {
    as: 'admin',
    body: { name, description: '' },
  });
  expectStatus(role, 'creating a role', 200, 201);
  const permissions = actions.map((item) => ({
    subject: null,
    properties: {},
    conditions: [],
    ...(typeof item === 'string' ? { action: item } : item),
  }));
  const saved = await site.request('PUT', `/admin/roles/${role.body.data.id}/permissions`, {
    as: 'admin',
    body: { permissions },
  });
  expectStatus(saved, 'granting permissions', 200);
  return name;
};

/**
 * Makes a user of the users-permissions plugin whose role has these actions, and signs in.
 * @returns the JWT, to be used as `{ as: { token } }`.
 */
export const createEndUser = async (site: Site, actions: string[] = []): Promise<string> => {
  const suffix = unique();
  const user = {
    username: `user${suffix}`,
    email: `user-${suffix}@example.test`,
    password: `Password1!${suffix}`,
  };
  await site.evaluate(
    async ({ strapi }, wanted, person) => {
      const role = await strapi.db.query('plugin::users-permissions.role').create({
        data: { name: `role ${person.username}`, type: person.username },
      });
      for (const action of wanted) {
        await strapi.db
          .query('plugin::users-permissions.permission')
          .create({ data: { action, role: role.id } });
      }
      await strapi
        .plugin('users-permissions')
        .service('user')
        .add({ ...person, provider: 'local', confirmed: true, blocked: false, role: role.id });
    },
    actions,
    user
  );
  const answer = await site.request('POST', '/api/auth/local', {
    as: 'nobody',
    body: { identifier: user.email, password: user.password },
  });
  expectStatus(answer, 'login of an end user', 200);
  return answer.body.jwt;
};
