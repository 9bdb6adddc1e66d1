import { proxyWarning } from '../net/client-address';
import type { Feature } from '../feature';
import { registerAdminActions } from './admin-actions';
import {
  applicationPasswordRoutes,
  applicationPasswordsController,
  applicationPasswordTable,
  cleanUpDeletedUsers,
  createApplicationPasswordsService,
} from './application-passwords';
import { addBasicAuthentication } from './basic-authentication';
import { arrangeCrmManager } from './crm-manager-role';
import { createFailedAttempts } from './failed-attempts';

const undo: (() => void)[] = [];

/** Who may do what: admin actions, the CRM Manager role, application passwords, Basic authentication. */
export const access: Feature = {
  tables: [applicationPasswordTable],
  services: { 'application-passwords': createApplicationPasswordsService },
  controllers: { 'application-passwords': applicationPasswordsController },
  routes: { admin: applicationPasswordRoutes },
  register({ strapi }) {
    addBasicAuthentication(strapi, createFailedAttempts());
  },
  async bootstrap({ strapi }) {
    const warning = proxyWarning(strapi.config.get('server.proxy'));
    if (warning) strapi.log.warn(`switchboard: ${warning}`);
    await registerAdminActions(strapi);
    undo.push(arrangeCrmManager(strapi), cleanUpDeletedUsers(strapi));
  },
  destroy() {
    for (const step of undo.splice(0)) step();
  },
};
