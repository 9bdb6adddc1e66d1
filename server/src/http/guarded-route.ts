import type { Core } from '@strapi/strapi';
import { errors } from '@strapi/utils';
import type { Context, Next } from 'koa';
import { errorText, framesOf } from '../runtime/text';
import type { RouteConfig } from '../feature';
import {
  fieldErrors,
  type FieldIssue,
  issue,
  issueErrors,
  LARGEST_ID,
  LONE_SURROGATE,
  MAX_DEPTH,
  MAX_NAMED,
} from './validation';

/** Errors that are answers: the host tells the client what they say, and logs nothing. */
const isAnswer = (error: unknown): boolean =>
  error instanceof errors.ApplicationError ||
  error instanceof errors.HttpError ||
  (error as { expose?: unknown } | null)?.expose === true;

/**
 * The host logs whatever else a controller throws, of a database's error the statement with the
 * values of the request. Here it is put into words that may be logged, with the frames of its stack.
 */
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

/** Characters that no database stores: PostgreSQL's text has no NUL, its JSON no half of a surrogate pair. */
const textIssue = (text: string): string | null => {
  if (text.includes('\0')) return 'must not contain a NUL character';
  return LONE_SURROGATE.test(text) ? 'must be valid Unicode' : null;
};

/** A field's name as an answer may show it. */
const printable = (key: string): string =>
  key.slice(0, 64).replace(/[\0\p{Surrogate}]/gu, '\ufffd');

/**
 * Finds text in a client's input that a database would refuse, however deep it lies, and nesting
 * that none would keep. Linear, and nothing is allocated on the way: every request pays for it.
 * @returns at most 20 issues, in the order they were sent, each with the path of its field
 */
export const findInputIssues = (input: unknown): FieldIssue[] => {
  const issues: FieldIssue[] = [];
  const path: string[] = [];
  const report = (message: string, at = path): void => {
    issues.push(issue(at.map(printable), message));
  };
  // Recursion is safe: it ends at MAX_DEPTH.
  const visit = (value: unknown): void => {
    if (typeof value === 'string') {
      const message = textIssue(value);
      if (message) report(message);
      return;
    }
    if (typeof value !== 'object' || value === null) return;
    if (path.length > MAX_DEPTH) {
      report(`must not be nested deeper than ${MAX_DEPTH}`, path.slice(0, 1));
      return;
    }
    const isList = Array.isArray(value);
    for (const key in value) {
      if (issues.length >= MAX_NAMED) return;
      path.push(key);
      const message = isList ? null : textIssue(key);
      if (message) report(`its name ${message}`);
      else visit((value as Record<string, unknown>)[key]);
      path.pop();
    }
  };
  visit(input);
  return issues;
};

/** True if a path's part could be the id of anything: text a database takes, a number of 32 bits. */
export const isPossibleId = (text: string): boolean =>
  textIssue(text) === null && !(/^\d+$/.test(text) && Number(text) > LARGEST_ID);

/**
 * Refuses, after authentication, what no database could take, so that no field or filter has to be
 * remembered: an id that no row can have with 404, everything else with a 400 that names each field.
 * Bodies that the host does not parse (a till's record, a file) are judged where they are read.
 */
const guardInput = async (ctx: Context, next: Next): Promise<void> => {
  const ids = Object.values((ctx.params ?? {}) as Record<string, string>);
  if (!ids.every((id) => isPossibleId(String(id)))) throw new errors.NotFoundError('Not found');
  const found = [...findInputIssues(ctx.query), ...findInputIssues(ctx.request.body)];
  if (found.length > 0) throw issueErrors(found);
  await next();
};

/**
 * Refuses every query parameter that a route does not document: a filter that is misspelt would
 * otherwise answer everything. A 400 that names each of them.
 * @param known  the parameters of the route
 */
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

/** A feature's controller for the host: created once a process, with a method for each action. */
export type ControllerFactory = (context: {
  strapi: Core.Strapi;
}) => Record<string, (ctx: Context) => Promise<void>>;

/** An answer with a secret in clear is kept by no cache, of a browser or on the way. */
export const forbidStoring = (ctx: Context): void => ctx.set('Cache-Control', 'no-store');
