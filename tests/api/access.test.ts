import { adminActionId } from '../../shared/contracts/permissions';
import { adminActionFor } from '../../server/src/access/rules/content-api-actions';
import {
  type AdminUser,
  createAdminRole,
  createAdminUser,
  createApiToken,
  createEndUser,
  FIRST_ADMIN,
} from '../support/accounts';
import { describeEach, anyDatabase } from '../support/databases';
import type { Site } from '../support/site';
import { waitFor } from '../support/wait';
import {
  CONTACTS,
  type Login,
  makePassword,
  PASSWORDS,
  TABLE,
  useManagedSite,
  WEBHOOKS,
} from './access-helpers';

jest.setTimeout(120_000);

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

describeEach(anyDatabase(), 'Basic authentication', (database) => {
  let site: Site;
  let manager: AdminUser;
  let login: Login;
  useManagedSite(database, (managed) => {
    ({ site, manager, login } = managed);
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
      expect((await site.request('GET', WEBHOOKS, { as: { basic: other.basic } })).status).toBe(
        401
      );
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
      expect((await site.request('GET', WEBHOOKS, { as: { basic: login.basic } })).status).toBe(
        200
      );
      expect((await site.request('GET', WEBHOOKS)).status).toBe(200);
    });
  });
});
