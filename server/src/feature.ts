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

/** One feature (ARCHITECTURE.md#layout). `server/src/index.ts` opens features in order and passes their parts on. */
export interface Feature {
  /** The site's option (`features`) that can leave it out; undefined: it is always there. */
  option?: FeatureId;
  contentTypes?: Record<string, { schema: unknown }>;
  /** Internal tables (not in content manager, GraphQL, export), or own columns next to a content type's attributes. */
  tables?: PlainTable[];
  services?: Record<string, unknown>;
  controllers?: Record<string, unknown>;
  policies?: Record<string, unknown>;
  routes?: FeatureRoutes;
  register?(app: App): void | Promise<void>;
  bootstrap?(app: App): void | Promise<void>;
  /** Takes no more work and ends what is under way; requests are still being answered meanwhile. */
  stop?(app: App): void | Promise<void>;
  /** Runs after the HTTP server is closed. Later writes must still become events, so keep what they need until exit. */
  destroy?(app: App): void | Promise<void>;
}
