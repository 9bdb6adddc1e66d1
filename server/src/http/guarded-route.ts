import type { z } from '@strapi/utils';
import type { RouteConfig } from '../feature';
import { boundErrors } from './error-boundary';
import { guardInput, refuseUnknownParameters } from './input-guard';

type Middleware = typeof guardInput;

const prepend = (route: RouteConfig, first: readonly Middleware[]): RouteConfig => {
  const { middlewares = [] } = (route.config ?? {}) as { middlewares?: unknown[] };
  return { ...route, config: { ...route.config, middlewares: [...first, ...middlewares] } };
};

/**
 * A route of the CRM or of the admin panel: its input is judged, its errors hold no payload. It takes
 * the parameters that its `request.query` names and no others. A route without authentication is
 * called by a mail provider, by an address that the owner gave it there.
 */
export const guardedRoute = (route: RouteConfig): RouteConfig => {
  const isForeign = route.config?.auth === false;
  const known = Object.keys(route.request?.query ?? {});
  return prepend(route, [
    boundErrors,
    guardInput,
    ...(isForeign ? [] : [refuseUnknownParameters(known)]),
  ]);
};

/** A till's route: what it takes is judged by the record's schema. */
export const tillRoute = (route: RouteConfig): RouteConfig => prepend(route, [boundErrors]);

/** The `request` of a route that takes a JSON body. */
export const jsonBody = (schema: z.ZodType) => ({ body: { 'application/json': schema } });

/** The `request` of a route that takes a query. */
export const queryOf = ({ shape }: z.ZodObject) => ({ query: shape });
