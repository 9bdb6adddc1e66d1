import type { FeatureId } from '../../shared/contracts/features';
import type { App } from './app';
import type { PlainTable } from './database/tables/plain-tables';

/** A host route, as `router.routes` takes it; the host's own type is wider than what we use. */
export interface RouteConfig {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  path: string;
  handler: string;
  /** zod types by their names; a parameter that `query` does not name is refused. */
  request?: {
    params?: Record<string, unknown>;
    query?: Record<string, unknown>;
    body?: Record<string, unknown>;
  };
  response?: unknown;
  config?: Record<string, unknown>;
}

export interface FeatureRoutes {
  /** `/api/fw-crm/v1`, docs/contract-webhooks.md#management-routes. */
  crm?: RouteConfig[];
  /** `/api/service-pos/v1`, docs/contract-pos.md#routes. */
  pos?: RouteConfig[];
  /** `/switchboard`, for the admin panel. */
  admin?: RouteConfig[];
}

/**
 * One feature (ARCHITECTURE.md#layout): everything of one concern. `server/src/index.ts` opens
 * the features in order and hands their parts to the host.
 */
export interface Feature {
  /** The site's option (`features`) that can leave it out; undefined: it is always there. */
  option?: FeatureId;
  contentTypes?: Record<string, { schema: unknown }>;
  /**
   * Internal tables, which are in no content manager, GraphQL or `strapi export`. Some are the plugin's
   * own columns, in addition to the attributes of a content type.
   */
  tables?: PlainTable[];
  services?: Record<string, unknown>;
  controllers?: Record<string, unknown>;
  policies?: Record<string, unknown>;
  routes?: FeatureRoutes;
  register?(app: App): void | Promise<void>;
  bootstrap?(app: App): void | Promise<void>;
  /** Takes no more work and ends what is under way; requests are still being answered meanwhile. */
  stop?(app: App): void | Promise<void>;
  /**
   * After the HTTP server was closed. Writes of other plugins, and of the site, may still come and
   * have to become events: what they need is never taken down, it ends with the database.
   */
  destroy?(app: App): void | Promise<void>;
}
