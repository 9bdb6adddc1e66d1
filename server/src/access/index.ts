import { proxyWarning } from '../net/client-address';
import { serviceOf } from '../app';
import type { Feature } from '../feature';
import { registerAdminActions } from './admin-actions';
import {
  applicationPasswordApi,
  ApplicationPasswordsService,
  applicationPasswordTable,
  cleanUpDeletedUsers,
} from './application-passwords';
import { addBasicAuthentication } from './basic-authentication';
import { arrangeCrmManager } from './crm-manager-role';
import { FailedAttempts } from './failed-attempts';

const undo: (() => void)[] = [];

/** Permissions: admin actions, the CRM Manager role, application passwords, Basic authentication. */
export const access: Feature = {
  tables: [applicationPasswordTable],
  services: { 'application-passwords': serviceOf(ApplicationPasswordsService) },
  controllers: applicationPasswordApi.controllers,
  routes: { admin: applicationPasswordApi.routes },
  register(app) {
    addBasicAuthentication(app, new FailedAttempts());
  },
  async bootstrap(app) {
    const warning = proxyWarning(app.strapi.config.get('server.proxy'));
    if (warning) app.log.warn(`switchboard: ${warning}`);
    await registerAdminActions(app);
    undo.push(arrangeCrmManager(app), cleanUpDeletedUsers(app));
  },
  destroy() {
    for (const step of undo.splice(0)) step();
  },
};
