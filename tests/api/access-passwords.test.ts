import { adminActionId } from '../../shared/contracts/permissions';
import { type AdminUser, createAdminUser, FIRST_ADMIN } from '../support/accounts';
import { describeEach, anyDatabase } from '../support/databases';
import type { Site } from '../support/site';
import {
  type Login,
  makePassword,
  PASSWORDS,
  TABLE,
  useManagedSite,
  WEBHOOKS,
} from './access-helpers';
import { logSoFar } from './delivery-support';

jest.setTimeout(120_000);

describeEach(anyDatabase(), 'application passwords', (database) => {
  let site: Site;
  let manager: AdminUser;
  let login: Login;
  useManagedSite(database, (managed) => {
    ({ site, manager, login } = managed);
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
      expect(await logSoFar(site)).not.toContain(password);
    });

    it('show and revoke nobody else’s', async () => {
      const other = await createAdminUser(site, { role: 'CRM Manager' });
      const as = { token: other.token };
      expect((await site.request('GET', PASSWORDS, { as })).body.data).toEqual([]);
      expect((await site.request('DELETE', `${PASSWORDS}/${login.id}`, { as })).status).toBe(404);
      expect((await site.request('GET', WEBHOOKS, { as: { basic: login.basic } })).status).toBe(
        200
      );
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
});
