import { ADMIN_ACTIONS, adminActionId } from '../../shared/contracts/permissions';
import { adminActionFor } from '../../server/src/access/rules/content-api-actions';
import {
  type AdminUser,
  createAdminRole,
  createAdminUser,
  createApiToken,
  createEndUser,
  FIRST_ADMIN,
} from '../support/accounts';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';

jest.setTimeout(120_000);

const WEBHOOKS = '/api/fw-crm/v1/webhooks';
const CONTACTS = '/api/fw-crm/v1/contacts';
const PASSWORDS = '/switchboard/application-passwords';
const TABLE = 'switchboard_application_passwords';

interface Login {
  id: number;
  basic: [string, string];
}

const makePassword = async (site: Site, user: { email: string; token: string }): Promise<Login> => {
  const answer = await site.request('POST', PASSWORDS, {
    as: { token: user.token },
    body: { name: 'a script' },
  });
  expect(answer.status).toBe(201);
  return { id: answer.body.data.id, basic: [user.email, answer.body.data.password] };
};

/** What the public, that is users-permissions without a token, may do from now on. */
const grantPublic = (site: Site, action: string): Promise<void> =>
  site.evaluate(async ({ strapi }, granted) => {
    const roles = strapi.db.query('plugin::users-permissions.role');
    const role = await roles.findOne({ where: { type: 'public' } });
    const data = { action: granted, role: role.id };
    await strapi.db.query('plugin::users-permissions.permission').create({ data });
  }, action);

const revokePublic = (site: Site, action: string): Promise<void> =>
  site.evaluate(async ({ strapi }, revoked) => {
    await strapi.db
      .query('plugin::users-permissions.permission')
      .deleteMany({ where: { action: revoked, role: { type: 'public' } } });
  }, action);

const setUser = (site: Site, id: number, data: Record<string, boolean>): Promise<unknown> =>
  site.control('query', { uid: 'admin::user', method: 'update', params: { where: { id }, data } });

let site: Site;
let manager: AdminUser;
let login: Login;

beforeAll(async () => {
  site = await startSite();
  manager = await createAdminUser(site, { role: 'CRM Manager' });
  login = await makePassword(site, manager);
});

afterAll(async () => {
  await site?.stop();
});

describe('an e-mail address and application password', () => {
  it('open the management routes to a CRM manager', async () => {
    const answer = await site.request('GET', WEBHOOKS, { as: { basic: login.basic } });
    expect(answer.status).toBe(200);
  });

  it('open them to an administrator', async () => {
    const own = await makePassword(site, { email: FIRST_ADMIN.email, token: site.adminToken });
    for (const path of [WEBHOOKS, `${WEBHOOKS}/events`, CONTACTS]) {
      expect((await site.request('GET', path, { as: { basic: own.basic } })).status).toBe(200);
    }
  });

  it('work without spaces and with the address in another case', async () => {
    const [email, password] = login.basic;
    const basic: [string, string] = [email.toUpperCase(), password.replaceAll(' ', '')];
    expect((await site.request('GET', WEBHOOKS, { as: { basic } })).status).toBe(200);
  });

  it('are refused with a 401 and a challenge when the password is wrong', async () => {
    const answer = await site.request('GET', WEBHOOKS, { as: { basic: [login.basic[0], 'no'] } });
    expect(answer.status).toBe(401);
    expect(answer.body).toMatchObject({ data: null, error: { status: 401 } });
    expect(answer.headers['www-authenticate']).toMatch(/^Basic realm=/);
  });

  it('tell nobody which addresses exist', async () => {
    const ask = (email: string, password: string) =>
      site.request('GET', WEBHOOKS, { as: { basic: [email, password] } });
    const known = await ask(login.basic[0], 'no');
    expect((await ask('nobody@example.test', 'no')).body).toEqual(known.body);
    expect((await ask(FIRST_ADMIN.email, login.basic[1])).body).toEqual(known.body);
  });

  it('are not the password of the admin panel', async () => {
    const basic: [string, string] = [manager.email, manager.password];
    expect((await site.request('GET', WEBHOOKS, { as: { basic } })).status).toBe(401);
  });

  it('when wrong are a 401 even where the public may do it', async () => {
    const action = 'plugin::switchboard.webhooks.find';
    await grantPublic(site, action);
    expect((await site.request('GET', WEBHOOKS, { as: 'nobody' })).status).toBe(200);
    const headers = { authorization: 'Basic nonsense' };
    expect((await site.request('GET', WEBHOOKS, { as: 'nobody', headers })).status).toBe(401);
    await revokePublic(site, action);
    expect((await site.request('GET', WEBHOOKS, { as: 'nobody' })).status).toBe(403);
  });

  it('stop working when the user is blocked or inactive, and work again after', async () => {
    const status = async () =>
      (await site.request('GET', WEBHOOKS, { as: { basic: login.basic } })).status;
    await setUser(site, manager.id, { blocked: true });
    expect(await status()).toBe(401);
    await setUser(site, manager.id, { blocked: false, isActive: false });
    expect(await status()).toBe(401);
    await setUser(site, manager.id, { isActive: true });
    expect(await status()).toBe(200);
  });

  it('stop working at once when the password is revoked', async () => {
    const other = await makePassword(site, manager);
    const revoked = await site.request('DELETE', `${PASSWORDS}/${other.id}`, {
      as: { token: manager.token },
    });
    expect(revoked.status).toBe(200);
    expect(revoked.body.data).toMatchObject({ id: other.id, name: 'a script' });
    expect((await site.request('GET', WEBHOOKS, { as: { basic: other.basic } })).status).toBe(401);
  });

  it('are forgotten with the user', async () => {
    const leaver = await createAdminUser(site, { role: 'CRM Manager' });
    await makePassword(site, leaver);
    const count = async () =>
      (
        await site.control<unknown[]>('sql', {
          statement: `select id from ${TABLE} where user_id = ${leaver.id}`,
        })
      ).length;
    expect(await count()).toBe(1);
    expect((await site.request('DELETE', `/admin/users/${leaver.id}`)).status).toBe(200);
    expect(await count()).toBe(0);
  });
});

describe('what Basic reaches', () => {
  it('is decided by the roles of the user, action by action', async () => {
    const role = await createAdminRole(site, [
      adminActionId('application-passwords.manage'),
      adminActionId('webhooks.read'),
    ]);
    const reader = await makePassword(site, await createAdminUser(site, { role }));
    const status = async (method: string, path: string) =>
      (await site.request(method, path, { as: { basic: reader.basic }, body: undefined })).status;
    expect(await status('GET', WEBHOOKS)).toBe(200);
    expect(await status('GET', `${WEBHOOKS}/events`)).toBe(200);
    expect(await status('POST', WEBHOOKS)).toBe(403);
    expect(await status('DELETE', `${WEBHOOKS}/1`)).toBe(403);
    expect(await status('POST', `${WEBHOOKS}/1/secret`)).toBe(403);
    expect(await status('POST', '/api/fw-crm/v1/webhook-deliveries/1/retry')).toBe(403);
    expect(await status('GET', CONTACTS)).toBe(403);
  });

  it('is every action of the management routes, so that none is forgotten', async () => {
    const scopes = await site.evaluate(({ strapi }) => {
      interface Routes {
        routes: { config: { auth?: false | { scope: string[] } } }[];
      }
      const { routes } = strapi.plugin('switchboard').routes.crm as Routes;
      return routes.flatMap(({ config }) => (config.auth ? config.auth.scope : []));
    });
    expect(scopes.length).toBeGreaterThan(0);
    expect(scopes.filter((scope) => adminActionFor(scope) === null)).toEqual([]);
  });

  it('is nothing outside this plugin, whatever the user may do in the panel', async () => {
    const own = await makePassword(site, { email: FIRST_ADMIN.email, token: site.adminToken });
    const as = { basic: own.basic };
    expect((await site.request('GET', '/api/firms', { as })).status).toBe(403);
    expect((await site.request('GET', '/api/users', { as })).status).toBe(403);
    expect((await site.request('GET', '/admin/users', { as })).status).toBe(401);
    expect((await site.request('GET', PASSWORDS, { as })).status).toBe(401);
  });

  it('leaves other routes to the site: a Basic header of its own changes nothing there', async () => {
    await grantPublic(site, 'api::firm.firm.find');
    const as = { basic: ['site', 'own scheme'] as [string, string] };
    const answer = await site.request('GET', '/api/firms', { as });
    expect(answer.status).toBe(200);
    expect(answer.headers['www-authenticate']).toBeUndefined();
    await revokePublic(site, 'api::firm.firm.find');
  });
});

describe('beside Basic', () => {
  it('API tokens work as before: full access, read-only, custom', async () => {
    const readOnly = { token: await createApiToken(site, { type: 'read-only' }) };
    const permissions = ['plugin::switchboard.webhooks.find'];
    const custom = { token: await createApiToken(site, { type: 'custom', permissions }) };
    expect((await site.request('GET', WEBHOOKS)).status).toBe(200);
    expect((await site.request('GET', WEBHOOKS, { as: readOnly })).status).toBe(200);
    expect((await site.request('POST', WEBHOOKS, { as: readOnly, body: {} })).status).toBe(403);
    expect((await site.request('GET', WEBHOOKS, { as: custom })).status).toBe(200);
    expect((await site.request('GET', CONTACTS, { as: custom })).status).toBe(403);
  });

  it('end users work as before', async () => {
    const granted = { token: await createEndUser(site, ['plugin::switchboard.webhooks.find']) };
    const other = { token: await createEndUser(site) };
    expect((await site.request('GET', WEBHOOKS, { as: granted })).status).toBe(200);
    expect((await site.request('GET', WEBHOOKS, { as: other })).status).toBe(403);
  });

  it('an admin session is no key to the content API', async () => {
    const answer = await site.request('GET', WEBHOOKS, { as: 'admin' });
    expect(answer.status).toBe(401);
  });
});

describe('the time of last use', () => {
  const stored = async (id: number): Promise<number | null> => {
    const [row] = await site.control<{ last_used_at: number | string | null }[]>('sql', {
      statement: `select last_used_at from ${TABLE} where id = ${id}`,
    });
    return row!.last_used_at === null ? null : Number(row!.last_used_at);
  };
  const shown = async (id: number): Promise<string | null> => {
    const list = await site.request('GET', PASSWORDS, { as: { token: manager.token } });
    return list.body.data.find((item: { id: number }) => item.id === id).last_used_at;
  };

  it('is noted, at most once a minute', async () => {
    const fresh = await makePassword(site, manager);
    expect(await shown(fresh.id)).toBeNull();
    const before = Date.now();
    const use = () => site.request('GET', WEBHOOKS, { as: { basic: fresh.basic } });
    const usedAgo = async (milliseconds: number): Promise<number> => {
      const at = Date.now() - milliseconds;
      await site.control('sql', {
        statement: `update ${TABLE} set last_used_at = ${at} where id = ${fresh.id}`,
      });
      return at;
    };

    await use();
    expect(Date.parse((await shown(fresh.id))!)).toBeGreaterThanOrEqual(before);
    const recent = await usedAgo(30_000);
    await use();
    expect(await stored(fresh.id)).toBe(recent);
    const old = await usedAgo(61_000);
    await use();
    expect(await stored(fresh.id)).toBeGreaterThan(old + 60_000);
  });

  it('is not moved by an attempt that fails', async () => {
    const fresh = await makePassword(site, manager);
    const basic: [string, string] = [FIRST_ADMIN.email, fresh.basic[1]];
    expect((await site.request('GET', WEBHOOKS, { as: { basic } })).status).toBe(401);
    expect(await stored(fresh.id)).toBeNull();
  });
});

describe('the routes of application passwords', () => {
  it('show a password once, and keep only its hash', async () => {
    const made = await site.request('POST', PASSWORDS, {
      as: { token: manager.token },
      body: { name: '  a name  ' },
    });
    expect(made.body).toEqual({
      data: { id: expect.any(Number), name: 'a name', password: expect.any(String) },
    });
    const { id, password } = made.body.data;
    const list = await site.request('GET', PASSWORDS, { as: { token: manager.token } });
    const listed = list.body.data.find((item: { id: number }) => item.id === id);
    expect(listed).toEqual({
      id,
      name: 'a name',
      created_at: expect.stringMatching(/^\d{4}-.*\+00:00$/),
      last_used_at: null,
    });
    const rows = await site.control('sql', { statement: `select * from ${TABLE}` });
    expect(JSON.stringify(rows)).not.toContain(password);
    expect(JSON.stringify(rows)).not.toContain(password.replaceAll(' ', ''));
    expect(site.log()).not.toContain(password);
  });

  it('show and revoke nobody else’s', async () => {
    const other = await createAdminUser(site, { role: 'CRM Manager' });
    const as = { token: other.token };
    expect((await site.request('GET', PASSWORDS, { as })).body.data).toEqual([]);
    expect((await site.request('DELETE', `${PASSWORDS}/${login.id}`, { as })).status).toBe(404);
    expect((await site.request('GET', WEBHOOKS, { as: { basic: login.basic } })).status).toBe(200);
  });

  it.each([
    [{}, 'name'],
    [{ name: '   ' }, 'name'],
    [{ name: 'x'.repeat(101) }, 'name'],
    [{ name: 5 }, 'name'],
    [{ name: 'x', password: 'mine' }, 'password'],
  ])('answer %j with a 400 that names the field', async (body, field) => {
    const answer = await site.request('POST', PASSWORDS, { body });
    expect(answer.status).toBe(400);
    expect(answer.body.error.details.errors[0].path).toEqual([field]);
  });

  it.each(['0', '-1', 'abc', '1e3', '99999999999999999999'])(
    'answer the id %s with a 404',
    async (id) => {
      expect((await site.request('DELETE', `${PASSWORDS}/${id}`)).status).toBe(404);
    }
  );

  it('are closed to whoever lacks the action, and to nobody in particular', async () => {
    const editor = await createAdminUser(site, { role: 'Editor' });
    expect((await site.request('GET', PASSWORDS, { as: { token: editor.token } })).status).toBe(
      403
    );
    expect((await site.request('GET', PASSWORDS, { as: 'nobody' })).status).toBe(401);
    expect((await site.request('GET', PASSWORDS, { as: 'api' })).status).toBe(401);
  });

  it('make none for an admin token, which may hold less than its owner', async () => {
    const token = await site.request('POST', '/admin/admin-tokens', {
      body: {
        name: 'narrow',
        description: '',
        lifespan: null,
        adminPermissions: [{ action: adminActionId('application-passwords.manage') }],
      },
    });
    expect(token.status).toBe(201);
    const as = { token: token.body.data.accessKey as string };
    expect((await site.request('GET', PASSWORDS, { as })).status).toBe(200);
    const made = await site.request('POST', PASSWORDS, { as, body: { name: 'wide' } });
    expect(made.status).toBe(403);
  });
});

describe('failed attempts', () => {
  it('beyond 30 a minute are a 429, and never keep a right password out', async () => {
    const fail = () => site.request('GET', WEBHOOKS, { as: { basic: ['a@b.test', 'no'] } });
    const limited = await waitFor(
      async () => {
        const answer = await fail();
        return answer.status === 429 ? answer : null;
      },
      60_000,
      'a 429'
    );
    const wait = Number(limited.headers['retry-after']);
    expect(wait).toBeGreaterThanOrEqual(1);
    expect(wait).toBeLessThanOrEqual(60);
    expect(limited.body).toMatchObject({ data: null, error: { status: 429 } });
    expect((await site.request('GET', WEBHOOKS, { as: { basic: login.basic } })).status).toBe(200);
    expect((await site.request('GET', WEBHOOKS)).status).toBe(200);
  });
});

describe('the CRM Manager role', () => {
  interface Held {
    action: string;
    subject: string | null;
    conditions: string[];
  }

  const held = (code: string): Promise<Held[] | null> =>
    site.evaluate(async ({ strapi }, wanted) => {
      const role = await strapi.db
        .query('admin::role')
        .findOne({ where: { code: wanted }, populate: ['permissions'] });
      return role && role.permissions;
    }, code);
  const CODE = 'switchboard-crm-manager';
  const ids = ADMIN_ACTIONS.map(adminActionId);

  it('has every action of the plugin, as the super admin has', async () => {
    for (const code of [CODE, 'strapi-super-admin']) {
      const actions = (await held(code))!.map(({ action }) => action);
      expect(actions).toEqual(expect.arrayContaining(ids));
      expect(actions.filter((action) => ids.includes(action))).toHaveLength(ids.length);
    }
  });

  it('may edit the plugin’s content types in the content manager, and no others', async () => {
    const onTypes = (await held(CODE))!.filter(({ subject }) => subject);
    expect(onTypes).toContainEqual(
      expect.objectContaining({
        action: 'plugin::content-manager.explorer.update',
        subject: 'plugin::switchboard.contact',
      })
    );
    expect(onTypes.filter(({ subject }) => !subject!.startsWith('plugin::switchboard.'))).toEqual(
      []
    );
  });

  it('does not spoil the host’s own roles: authors still edit only what they created', async () => {
    const own = (await held('strapi-author'))!.filter(({ action }) =>
      action.startsWith('plugin::content-manager.explorer.')
    );
    expect(own.length).toBeGreaterThan(0);
    expect(own.filter(({ conditions }) => !conditions.includes('admin::is-creator'))).toEqual([]);
    expect((await held('strapi-editor'))!.length).toBeGreaterThan(own.length);
    for (const code of ['strapi-author', 'strapi-editor']) {
      expect((await held(code))!.filter(({ action }) => ids.includes(action))).toEqual([]);
    }
  });

  it('gets nothing back that an administrator took away, and once what is new', async () => {
    const [removed, brandNew] = [adminActionId('stock.manage'), adminActionId('crm.import')];
    await site.evaluate(
      async ({ strapi }, code, actions, forgotten) => {
        await strapi.db
          .query('admin::permission')
          .deleteMany({ where: { role: { code }, action: { $in: actions } } });
        const store = strapi.store({
          type: 'plugin',
          name: 'switchboard',
          key: 'crm-manager-role',
        });
        const { offered } = await store.get();
        const value = { offered: offered.filter((key: string) => key !== forgotten) };
        await store.set({ value });
      },
      CODE,
      [removed, brandNew],
      brandNew
    );
    const before = (await held(CODE))!.length;
    await site.restart();
    const actions = (await held(CODE))!.map(({ action }) => action);
    expect(actions).not.toContain(removed);
    expect(actions).toContain(brandNew);
    expect(actions).toHaveLength(before + 1);
    await site.restart();
    expect(await held(CODE)).toHaveLength(before + 1);
  });

  it('does not come back when it was deleted', async () => {
    await site.evaluate(async ({ strapi }, code) => {
      const role = await strapi.db.query('admin::role').findOne({ where: { code } });
      await strapi.db.query('admin::role').update({ where: { id: role.id }, data: { users: [] } });
      await strapi.service('admin::role').deleteByIds([role.id]);
    }, CODE);
    await site.restart();
    expect(await held(CODE)).toBeNull();
  });
});
