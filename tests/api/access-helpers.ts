import { type AdminUser, createAdminUser } from '../support/accounts';
import type { DatabaseKind } from '../support/databases';
import { type Site, startSite } from '../support/site';

export const WEBHOOKS = '/api/fw-crm/v1/webhooks';
export const CONTACTS = '/api/fw-crm/v1/contacts';
export const PASSWORDS = '/switchboard/application-passwords';
export const TABLE = 'switchboard_application_passwords';

export interface Login {
  id: number;
  basic: [string, string];
}

/** Makes an application password as its owner does, and resolves with what Basic takes. */
export const makePassword = async (
  site: Site,
  user: { email: string; token: string }
): Promise<Login> => {
  const answer = await site.request('POST', PASSWORDS, {
    as: { token: user.token },
    body: { name: 'a script' },
  });
  expect(answer.status).toBe(201);
  return { id: answer.body.data.id, basic: [user.email, answer.body.data.password] };
};

export interface Managed {
  site: Site;
  manager: AdminUser;
  /** An application password of the manager's. */
  login: Login;
}

/** A site with a CRM manager for all tests of the `describe` it is called in. */
export const useManagedSite = (
  database: DatabaseKind,
  started: (managed: Managed) => void
): void => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({ database });
    const manager = await createAdminUser(site, { role: 'CRM Manager' });
    started({ site, manager, login: await makePassword(site, manager) });
  });
  afterAll(async () => {
    await site?.stop();
  });
};
