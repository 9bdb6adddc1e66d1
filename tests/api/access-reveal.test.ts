import { adminActionId } from '../../shared/contracts/permissions';
import {
  createAdminRole,
  createAdminUser,
  createApiToken,
  createEndUser,
} from '../support/accounts';
import type { Answer } from '../support/http';
import { type Site, startSite } from '../support/site';
import { makePassword, PASSWORDS, WEBHOOKS } from './access-helpers';

/** Who is shown a signing secret: revealing is an action of its own (docs/management-api.md#the-actions). */

jest.setTimeout(120_000);

const FIND_ONE = 'plugin::switchboard.webhooks.findOne';
const REVEAL = 'plugin::switchboard.webhooks.revealSecret';

let site: Site;
let id: number;
let secret: string;

beforeAll(async () => {
  site = await startSite();
  const created = await site.request('POST', WEBHOOKS, {
    body: { name: 'r', url: 'https://receiver.invalid/', events: ['*'] },
  });
  expect(created.status).toBe(201);
  expect(created.headers['cache-control']).toBe('no-store');
  ({ id, secret } = created.body);
});

afterAll(() => site?.stop());

const adminWith = async (...actions: Parameters<typeof adminActionId>[0][]) =>
  createAdminUser(site, { role: await createAdminRole(site, actions.map(adminActionId)) });

type Who = Parameters<Site['request']>[2];

const read = async (who: Who) => {
  const [one, alone] = [
    await site.request('GET', `${WEBHOOKS}/${id}`, who),
    await site.request('GET', `${WEBHOOKS}/${id}/secret`, who),
  ];
  return { one, alone };
};

const expectHidden = ({ one, alone }: { one: Answer; alone: Answer }) => {
  expect(one.status).toBe(200);
  expect(one.body).toMatchObject({ id, name: 'r' });
  expect(one.body).not.toHaveProperty('secret');
  expect(one.text).not.toContain('whsec_');
  expect(alone.status).toBe(403);
};

const expectShown = ({ one, alone }: Record<'one' | 'alone', Answer<{ secret?: string }>>) => {
  for (const answer of [one, alone]) {
    expect(answer.status).toBe(200);
    expect(answer.body.secret).toBe(secret);
    expect(answer.headers['cache-control']).toBe('no-store');
  }
  expect(alone.body).toEqual({ secret });
};

describe('over the content API', () => {
  test('a full-access token is shown the secret, a read-only one is not', async () => {
    expectShown(await read({}));
    const token = await createApiToken(site, { type: 'read-only' });
    expectHidden(await read({ as: { token } }));
  });

  test('a custom token and a role are shown it when they were granted the action', async () => {
    const custom = (permissions: string[]) => createApiToken(site, { type: 'custom', permissions });
    expectHidden(await read({ as: { token: await custom([FIND_ONE]) } }));
    expectShown(await read({ as: { token: await custom([FIND_ONE, REVEAL]) } }));
    expectHidden(await read({ as: { token: await createEndUser(site, [FIND_ONE]) } }));
    expectShown(await read({ as: { token: await createEndUser(site, [FIND_ONE, REVEAL]) } }));
  });

  test('the action can be ticked for tokens and roles', async () => {
    const answer = await site.request('GET', '/admin/content-api/permissions', { as: 'admin' });
    expect(answer.body.data['plugin::switchboard'].controllers.webhooks).toContain('revealSecret');
  });

  test('through Basic the user’s RBAC decides', async () => {
    const basicOf = async (user: { email: string; token: string }) => ({
      as: { basic: (await makePassword(site, user)).basic },
    });
    const reader = await adminWith('application-passwords.manage', 'webhooks.read');
    expectHidden(await read(await basicOf(reader)));
    const keeper = await adminWith(
      'application-passwords.manage',
      'webhooks.read',
      'webhooks.reveal'
    );
    expectShown(await read(await basicOf(keeper)));
    const manager = await createAdminUser(site, { role: 'CRM Manager' });
    expectShown(await read(await basicOf(manager)));
  });
});

describe('in the admin', () => {
  const readAdmin = async (as: Who) => {
    const one = await site.request('GET', `/switchboard/webhooks/${id}`, as);
    const alone = await site.request('GET', `/switchboard/webhooks/${id}/secret`, as);
    return { one, alone };
  };

  test('a role that may only read is not shown it', async () => {
    const reader = await adminWith('webhooks.read', 'webhooks.update');
    const { one, alone } = await readAdmin({ as: { token: reader.token } });
    expect(one.status).toBe(200);
    expect(one.body.data).not.toHaveProperty('secret');
    expect(alone.status).toBe(403);
  });

  test('one that may reveal, and the super admin, are, unless the panel asks again and again', async () => {
    const keeper = await adminWith('webhooks.read', 'webhooks.reveal');
    for (const as of ['admin' as const, { token: keeper.token }]) {
      const { one, alone } = await readAdmin({ as });
      expect(one.body.data.secret).toBe(secret);
      expect(alone.body.data).toEqual({ secret });
      for (const answer of [one, alone]) expect(answer.headers['cache-control']).toBe('no-store');
      const asked = await site.request('GET', `/switchboard/webhooks/${id}?secrets=false`, { as });
      expect(asked.status).toBe(200);
      expect(asked.text).not.toContain('whsec_');
    }
  });
});

test('every other answer with a secret is no-store too', async () => {
  const rotated = await site.request('POST', `${WEBHOOKS}/${id}/secret`);
  expect(rotated.body.secret).toMatch(/^whsec_/);
  const connection = await site.request('POST', '/switchboard/connections', {
    body: { name: 'till', mode: 'live', scopes: ['sale:write'], locations: [] },
  });
  expect(connection.status).toBe(201);
  const again = await site.request(
    'POST',
    `/switchboard/connections/${connection.body.data.id}/secret`
  );
  const password = await site.request('POST', PASSWORDS, { body: { name: 'script' } });
  for (const answer of [rotated, connection, again, password]) {
    expect(answer.status).toBeLessThan(300);
    expect(answer.headers['cache-control']).toBe('no-store');
  }
});
