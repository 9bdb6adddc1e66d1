import { ADMIN_ACTIONS, adminActionId } from '../../../shared/contracts/permissions';
import { adminPolicies, registerAdminActions } from '../../../server/src/access/admin-actions';
import { currentAdminUser } from '../../../server/src/access/current-admin-user';
import { parseOptions } from '../../../server/src/config/schema';
import { grantKey, grantsToOffer } from '../../../server/src/access/crm-manager-role';

const read = { action: 'explorer.read', subject: 'plugin::switchboard.contact' };
const write = { action: 'explorer.update', subject: 'plugin::switchboard.contact' };
const own = { action: 'plugin::switchboard.webhooks.read' };

describe('what the CRM Manager role is given', () => {
  it('is everything at first', () => {
    expect(grantsToOffer([read, write, own], [])).toEqual([read, write, own]);
  });

  it('never again includes what it had once, whoever took it away', () => {
    expect(grantsToOffer([read, write, own], [read, own].map(grantKey))).toEqual([write]);
  });

  it('includes the same action on a content type that came later', () => {
    const deal = { ...read, subject: 'plugin::switchboard.deal' };
    expect(grantsToOffer([read, deal], [grantKey(read)])).toEqual([deal]);
  });
});

describe('admin actions', () => {
  const register = async (options: object) => {
    const registered: { uid: string; pluginName: string; displayName: string }[] = [];
    const registerMany = async (actions: typeof registered) => registered.push(...actions);
    await registerAdminActions({
      options: parseOptions(options),
      strapi: { service: () => ({ actionProvider: { registerMany } }) },
    } as never);
    return registered;
  };

  it('are all registered with the host under the ids that routes ask for', async () => {
    const registered = await register({});
    const ids = registered.map(({ pluginName, uid }) => `plugin::${pluginName}.${uid}`);
    expect(ids).toEqual(ADMIN_ACTIONS.map(adminActionId));
    expect(registered.every(({ uid }) => /^[a-z]([a-z|.|-]+)[a-z]$/.test(uid))).toBe(true);
  });

  it.each([
    ['crm', /^crm\./, 3],
    ['pos', /^(connections|pos-events|sales|mapping|stock)\./, 9],
  ])('are not offered where they mean nothing, without %s', async (feature, theirs, count) => {
    const all = ADMIN_ACTIONS.map(String);
    const uids = (await register({ features: { [feature]: false } })).map(({ uid }) => uid);
    expect(uids).toEqual(all.filter((uid) => !theirs.test(uid)));
    expect(uids).toHaveLength(all.length - count);
  });

  it('are each asked for by a route that names several', () => {
    expect(adminPolicies('webhooks.read', 'crm.read')).toEqual([
      'admin::isAuthenticatedAdmin',
      {
        name: 'admin::hasPermissions',
        config: {
          actions: ['plugin::switchboard.webhooks.read', 'plugin::switchboard.crm.read'],
        },
      },
    ]);
  });
});

describe('the admin user behind a request', () => {
  const admin = { id: 7, email: 'a@b.test' };
  const context = (state: unknown) => ({ state }) as never;

  it('is found in the panel, with an admin token and under Basic', () => {
    for (const name of ['admin', 'admin-token']) {
      expect(currentAdminUser(context({ auth: { strategy: { name } }, user: admin }))).toBe(admin);
    }
    const auth = { strategy: { name: 'switchboard-basic' }, credentials: admin };
    expect(currentAdminUser(context({ auth }))).toBe(admin);
  });

  it('is never a user of users-permissions, whose ids are others', () => {
    const auth = { strategy: { name: 'users-permissions' }, credentials: admin };
    expect(currentAdminUser(context({ auth, user: admin }))).toBeNull();
    expect(currentAdminUser(context({}))).toBeNull();
  });
});
