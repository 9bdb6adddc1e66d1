import { ADMIN_ACTIONS, adminActionId } from '../../shared/contracts/permissions';
import { describeEach, anyDatabase } from '../support/databases';
import { type Site, startSite } from '../support/site';

jest.setTimeout(120_000);

describeEach(anyDatabase(), 'access', (database) => {
  let site: Site;

  beforeAll(async () => {
    site = await startSite({ database });
  });

  afterAll(async () => {
    await site?.stop();
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
        await strapi.db
          .query('admin::role')
          .update({ where: { id: role.id }, data: { users: [] } });
        await strapi.service('admin::role').deleteByIds([role.id]);
      }, CODE);
      await site.restart();
      expect(await held(CODE)).toBeNull();
    });
  });
});
