import type { Core } from '@strapi/strapi';

/** A host route, as `router.routes` takes it; the host's own type is wider than what we use. */
export interface RouteConfig {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  path: string;
  handler: string;
  info?: { type?: string; apiName?: string };
  request?: Record<string, unknown>;
  response?: unknown;
  config?: Record<string, unknown>;
}

/** Where a room's routes are served. */
export interface RoomRoutes {
  /** `/api/fw-crm/v1`, specification 1. */
  crm?: RouteConfig[];
  /** `/api/service-pos/v1`, specification 2. */
  pos?: RouteConfig[];
  /** `/switchboard`, for the admin panel. */
  admin?: RouteConfig[];
}

/** What `strapi.get('models').add()` takes: a table of the plugin's own that is no content type. */
export interface TableModel {
  uid: string;
  singularName: string;
  tableName: string;
  attributes: Record<string, Record<string, unknown>>;
  indexes?: { name: string; columns: string[]; type?: 'unique' | null }[];
}

export interface RoomContext {
  strapi: Core.Strapi;
}

/**
 * One room of the house (ARCHITECTURE.md): everything of one concern. `server/src/index.ts` opens
 * the rooms in order and hands their parts to the host.
 */
export interface Room {
  contentTypes?: Record<string, { schema: unknown }>;
  /**
   * Internal tables. Not content types on purpose: they are then never in the content manager, in
   * GraphQL, in the content-type builder or in `strapi export`, and have no columns they do not use.
   */
  tables?: TableModel[];
  services?: Record<string, unknown>;
  controllers?: Record<string, unknown>;
  policies?: Record<string, unknown>;
  routes?: RoomRoutes;
  register?(context: RoomContext): void | Promise<void>;
  bootstrap?(context: RoomContext): void | Promise<void>;
  destroy?(context: RoomContext): void | Promise<void>;
}
