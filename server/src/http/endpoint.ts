import { createHash } from 'node:crypto';
import type { z } from '@strapi/utils';
import type { Context } from 'koa';
import type { AdminAction } from '../../../shared/contracts/permissions';
import { type App, appOf } from '../app';
import type { RouteConfig } from '../feature';
import { codeOf, Refused } from '../runtime/refusal';
import { isRecord } from '../runtime/text';
import type { ControllerFactory } from './guarded-route';
import { idFromPath, parseInput } from './validation';

/** A request, as an endpoint sees it: input is parsed when it is read, in that order. */
export interface EndpointRequest<Query = unknown, Body = unknown> {
  app: App;
  ctx: Context;
  /** The id in the path. @throws NotFoundError (404) that names `what` */
  id(what: string): number;
  /** @throws ValidationError (400) that names each field, as `body` does */
  query(): Query;
  body(): Body;
}

interface Described<Query, Body> {
  /** The action that a user of the panel needs. */
  may?: AdminAction | readonly AdminAction[];
  /** The host's policies of its route in the panel, in addition to those of `may`. */
  policies?: readonly object[];
  params?: Record<string, z.ZodType>;
  query?: Query;
  body?: Body;
  /** The answer's schema, for the OpenAPI document. */
  response?: z.ZodType;
  /** The answer is the body as it is, such as a page of a list, and no single object. */
  whole?: boolean;
  /** The status of an answer; else 200. */
  status?: number;
}

/** How a single object is put into an answer: bare for the CRM API, in `data` for the panel. */
export type Shape = (value: unknown) => unknown;

export interface Endpoint extends Omit<RouteConfig, 'handler' | 'config'> {
  may: readonly AdminAction[];
  policies: readonly object[];
  respond(app: App, ctx: Context, shape: Shape): Promise<void>;
}

/** True for what is answered as JSON; a stream is an object, too. */
const isPlain = (body: unknown): boolean =>
  isRecord(body) && Object.getPrototypeOf(body) === Object.prototype;

/** Lets the reader keep an answer and ask whether it has changed: if not, it is answered 304. */
const tagAnswer = (ctx: Context): void => {
  // Commands call controllers, too, with less than a request.
  if (ctx.method !== 'GET' || ctx.status !== 200 || !isPlain(ctx.body)) return;
  if (ctx.response.get('Cache-Control') !== '') return;
  const text = JSON.stringify(ctx.body);
  ctx.body = text;
  ctx.type = 'application/json';
  ctx.set('Cache-Control', 'private, no-cache');
  ctx.etag = createHash('sha1').update(text).digest('base64url');
  if (ctx.fresh) ctx.status = 304;
};

/**
 * @param call method and path
 * @param answer resolves with `undefined` for 204 or if it has answered itself; with `Refused` for a 409 or 503
 */
export const endpoint = <Query extends z.ZodObject, Body extends z.ZodType>(
  call: string,
  { may = [], policies = [], params, query, body, response, whole, status }: Described<Query, Body>,
  answer: (request: EndpointRequest<z.infer<Query>, z.infer<Body>>) => unknown
): Endpoint => {
  const [method, path] = call.split(' ') as [RouteConfig['method'], string];
  const request = {
    ...(params && { params }),
    ...(query && { query: query.shape }),
    ...(body && { body: { 'application/json': body } }),
  };
  return {
    method,
    path,
    response,
    may: [may].flat(),
    policies,
    ...(Object.keys(request).length > 0 && { request }),
    async respond(app, ctx, shape) {
      const answered = await answer({
        app,
        ctx,
        id: (what) => idFromPath(ctx.params.id, what),
        query: () => parseInput(query!, ctx.query),
        body: () => parseInput(body!, ctx.request.body),
      });
      if (answered instanceof Refused) {
        const { refusal } = answered;
        const say = answered.status === 409 ? 'conflict' : 'serviceUnavailable';
        ctx[say](refusal.message, codeOf(refusal));
      } else if (answered !== undefined) {
        if (status !== undefined) ctx.status = status;
        ctx.body = whole ? answered : shape(answered);
        tagAnswer(ctx);
      } else if (ctx.body === undefined) ctx.status = 204;
    },
  };
};

/** Endpoints by controller and action; of several routes of one, the answer is the first one's. */
export type Endpoints = Readonly<Record<string, Readonly<Record<string, Endpoint | Endpoint[]>>>>;

/** Endpoints with their handlers, in the order of their routes: one for `/a/b` before one for `/a/:id`. */
export const handledBy = (tables: readonly Endpoints[]): [handler: string, Endpoint][] =>
  tables.flatMap((table) =>
    Object.entries(table).flatMap(([controller, actions]) =>
      Object.entries(actions).flatMap(([name, those]) =>
        [those].flat().map((one): [string, Endpoint] => [`${controller}.${name}`, one])
      )
    )
  );

/** The controllers of endpoints. @param nameOf what one is called, by its name in the table */
export const controllersOf = (
  tables: readonly Endpoints[],
  shape: Shape,
  nameOf = (controller: string) => controller
): Record<string, ControllerFactory> => {
  const controllers = new Map<string, [action: string, Endpoint][]>();
  for (const [handler, one] of handledBy(tables).reverse()) {
    const [controller = '', action = ''] = handler.split('.');
    controllers.set(controller, [...(controllers.get(controller) ?? []), [action, one]]);
  }
  return Object.fromEntries(
    [...controllers].map(([controller, actions]) => [
      nameOf(controller),
      ({ strapi }) =>
        Object.fromEntries(
          actions.map(([action, { respond }]) => [
            action,
            (ctx: Context) => respond(appOf(strapi), ctx, shape),
          ])
        ),
    ])
  );
};
