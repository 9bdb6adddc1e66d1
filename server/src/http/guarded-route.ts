import type { RouteConfig } from '../feature';
import { boundErrors } from './error-boundary';
import { guardInput } from './input-guard';

type Middleware = typeof guardInput;

const prepend = (route: RouteConfig, first: readonly Middleware[]): RouteConfig => {
  const { middlewares = [] } = (route.config ?? {}) as { middlewares?: unknown[] };
  return { ...route, config: { ...route.config, middlewares: [...first, ...middlewares] } };
};

/** A route of the CRM or of the admin panel: its input is judged, its errors hold no payload. */
export const guardedRoute = (route: RouteConfig): RouteConfig =>
  prepend(route, [boundErrors, guardInput]);

/** A till's route: what it takes is judged by the record's schema. */
export const tillRoute = (route: RouteConfig): RouteConfig => prepend(route, [boundErrors]);
