import type { Room } from '../room';
import { registerAdminActions } from './admin-actions';
import { applicationPasswordTable } from './application-password-table';
import { createApplicationPasswordsService } from './application-passwords';
import {
  applicationPasswordRoutes,
  applicationPasswordsController,
} from './application-passwords-controller';
import { addBasicAuthentication } from './basic-authentication';
import { arrangeCrmManager } from './crm-manager-role';
import { createFailedAttempts } from './failed-attempts';
import { forgetDeletedUsers } from './forget-users';

const undo: (() => void)[] = [];

/** Who may do what: admin actions, the CRM Manager role, application passwords, Basic authentication. */
export const access: Room = {
  tables: [applicationPasswordTable],
  services: { 'application-passwords': createApplicationPasswordsService },
  controllers: { 'application-passwords': applicationPasswordsController },
  routes: { admin: applicationPasswordRoutes },
  register({ strapi }) {
    addBasicAuthentication(strapi, createFailedAttempts());
  },
  async bootstrap({ strapi }) {
    await registerAdminActions(strapi);
    undo.push(arrangeCrmManager(strapi), forgetDeletedUsers(strapi));
  },
  destroy() {
    for (const step of undo.splice(0)) step();
  },
};
