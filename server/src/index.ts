import type { Core } from '@strapi/strapi';
import { access } from './access';
import { config } from './config';
import { crm } from './crm';
import type { EmailService } from './crm/email/types';
import type { ContactImport } from './crm/import/import-service';
import { modules } from './modules';
import { overview } from './overview';
import { pos } from './pos';
import type { Room, RouteConfig } from './room';
import { stock } from './stock';
import { webhooks } from './webhooks';
import type { EventsService } from './webhooks/events-service';

/** In the order of the arrows: a room comes after the rooms it uses. */
const rooms: readonly Room[] = [modules, access, webhooks, crm, stock, pos, overview];

const gather = <K extends 'contentTypes' | 'services' | 'controllers' | 'policies'>(
  part: K
): NonNullable<Room[K]> => Object.assign({}, ...rooms.map((room) => room[part] ?? {}));

const routesOf = (api: 'crm' | 'pos' | 'admin'): RouteConfig[] =>
  rooms.flatMap((room) => room.routes?.[api] ?? []);

interface HostContext {
  strapi: Core.Strapi;
}

export default {
  config,
  contentTypes: gather('contentTypes'),
  services: gather('services'),
  controllers: gather('controllers'),
  policies: gather('policies'),
  routes: {
    crm: { type: 'content-api', prefix: '/fw-crm/v1', routes: routesOf('crm') },
    pos: { type: 'content-api', prefix: '/service-pos/v1', routes: routesOf('pos') },
    admin: { type: 'admin', routes: routesOf('admin') },
  },
  async register(context: HostContext): Promise<void> {
    for (const room of rooms) {
      for (const model of room.tables ?? []) context.strapi.get('models').add(model);
      await room.register?.(context);
    }
  },
  async bootstrap(context: HostContext): Promise<void> {
    for (const room of rooms) await room.bootstrap?.(context);
  },
  async destroy(context: HostContext): Promise<void> {
    for (const room of [...rooms].reverse()) await room.destroy?.(context);
  },
};

/** For other plugins: the types of the hooks, of the payloads and of the services they may call. */
export type * from './hooks/types';
export type * from './crm/email/types';
export type { ImportIssue, ImportReport } from '../../shared/contracts/crm';
export type { ContactImport, EventsService };

/** What `strapi.service(uid)` is for the plugin's public services. */
export interface SwitchboardServices {
  'plugin::switchboard.events': EventsService;
  'plugin::switchboard.email': EmailService;
  'plugin::switchboard.contact-import': ContactImport;
}
