import type { Core } from '@strapi/strapi';
import { errors } from '@strapi/utils';
import type { Context, Next } from 'koa';
import { errorText, framesOf } from '../runtime/text';
import type { RouteConfig } from '../feature';
import {
  fieldErrors,
  findInputIssues,
  isPossibleId,
  issueErrors,
  MAX_NAMED,
  printable,
} from './validation';

/** Errors that are answers: the host tells the client what they say, and logs nothing. */
const isAnswer = (error: unknown): boolean =>
  error instanceof errors.ApplicationError ||
  error instanceof errors.HttpError ||
  (error as { expose?: unknown } | null)?.expose === true;

/** Replaces errors by loggable ones: the host would log a database error's statement with the request's values. */
const boundErrors = async (_ctx: Context, next: Next): Promise<void> => {
  try {
    await next();
  } catch (error) {
    if (isAnswer(error)) throw error;
    const bounded = new Error(errorText(error));
    bounded.stack = `${bounded.message}\n${error instanceof Error ? framesOf(error) : ''}`;
    throw Object.assign(bounded, { status: (error as { status?: unknown } | null)?.status });
  }
};

/**
 * Refuses, after authentication, values that no database accepts: an impossible id with 404, others with a 400 that
 * names each field. Bodies that the host does not parse (a till's record, a file) are checked where they are read.
 */
const guardInput = async (ctx: Context, next: Next): Promise<void> => {
  const ids = Object.values((ctx.params ?? {}) as Record<string, string>);
  if (!ids.every((id) => isPossibleId(String(id)))) throw new errors.NotFoundError('Not found');
  const found = [...findInputIssues(ctx.query), ...findInputIssues(ctx.request.body)];
  if (found.length > 0) throw issueErrors(found);
  await next();
};

/** Refuses parameters that a route does not document with a 400: a misspelt filter would match everything. */
const refuseUnknownParameters = (known: readonly string[]) => {
  const takes = known.length > 0 ? `; it takes ${known.join(', ')}` : ', which takes none';
  const message = `is not a parameter of this route${takes}`;
  return async (ctx: Context, next: Next): Promise<void> => {
    const unknown = Object.keys(ctx.query).filter((name) => !known.includes(name));
    if (unknown.length > 0) {
      const named = unknown.slice(0, MAX_NAMED).map(printable);
      throw fieldErrors(named.map((path) => ({ path, message, code: 'unknown_field' })));
    }
    await next();
  };
};

const prepend = (route: RouteConfig, first: readonly (typeof guardInput)[]): RouteConfig => {
  const { middlewares = [] } = (route.config ?? {}) as { middlewares?: unknown[] };
  return { ...route, config: { ...route.config, middlewares: [...first, ...middlewares] } };
};

/**
 * A CRM or admin route: checks its input, keeps payloads out of errors, and takes only the parameters of
 * `request.query`. A route without authentication is called by a mail provider, at an address that the site owner
 * configured there.
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

/** A feature's controller for the host: created once a process, with a method for each action. */
export type ControllerFactory = (context: {
  strapi: Core.Strapi;
}) => Record<string, (ctx: Context) => Promise<void>>;

/** An answer with a secret in clear is kept by no cache, of a browser or on the way. */
export const forbidStoring = (ctx: Context): void => ctx.set('Cache-Control', 'no-store');
