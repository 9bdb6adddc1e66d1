import type { Server, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Core } from '@strapi/strapi';
import type { Context, Next } from 'koa';
import type { Feature, FeatureRoutes } from '../feature';
import type { App } from '../app';

/** The first parts of the addresses of the plugin's routes, in lower case. */
const foldersOf = ({ strapi }: App): [api: keyof FeatureRoutes, folder: string][] => {
  const prefix = strapi.config.get<string>('api.rest.prefix', '/api');
  const api = prefix.replace(/\/+$/, '').toLowerCase();
  return [
    ['crm', `${api}/fw-crm/v1`],
    ['pos', `${api}/service-pos/v1`],
    ['admin', '/switchboard'],
  ];
};

/** Answers in the host's format of errors. */
const refuse = (ctx: Context, status: number, name: string, message: string): void => {
  ctx.status = status;
  ctx.body = { data: null, error: { status, name, message, details: {} } };
};

/** The first words of the paths that features serve. */
const wordsOf = (api: keyof FeatureRoutes, features: readonly Feature[]): Set<string> =>
  new Set(
    features
      .flatMap(({ routes }) => routes?.[api] ?? [])
      .map(({ path }) => path.split('/')[1] ?? '')
  );

const isBelow = (path: string, beginning: string): boolean =>
  path.startsWith(beginning) &&
  (beginning.endsWith('/') || path.length === beginning.length || path[beginning.length] === '/');

/** Answers 404 for routes of absent features; the host would answer a POST with 405, as public files serve any GET. */
export const answerAbsent = (app: App, present: readonly Feature[], absent: readonly Feature[]) => {
  /** Addresses that only absent features would serve. */
  const beginnings = foldersOf(app).flatMap(([api, folder]) => {
    const served = wordsOf(api, present);
    const gone = [...wordsOf(api, absent)].filter((word) => !served.has(word));
    if (gone.length > 0 && served.size === 0) return [`${folder}/`];
    return gone.map((word) => `${folder}/${word}`);
  });
  return async (ctx: Context, next: Next): Promise<void> => {
    await next();
    if (ctx.status !== 405) return;
    const path = ctx.path.toLowerCase();
    if (!beginnings.some((beginning) => isBelow(path, beginning))) return;
    ctx.remove('Allow');
    refuse(ctx, 404, 'NotFoundError', 'Not Found');
  };
};

const MESSAGE = 'Send JSON: these routes take no multipart form.';

/** Refuses multipart forms before the host's parser, which writes files; routes that read bodies hid their type. */
export const refuseForms = (app: App) => {
  const folders = foldersOf(app).map(([, folder]) => `${folder}/`);
  return async (ctx: Context, next: Next): Promise<void> => {
    const isForm = /^\s*multipart\//i.test(ctx.req.headers['content-type'] ?? '');
    const path = isForm ? ctx.path.toLowerCase() : '';
    if (!isForm || !folders.some((folder) => path.startsWith(folder))) return next();
    refuse(ctx, 415, 'UnsupportedMediaTypeError', MESSAGE);
  };
};

/** How long requests that are under way may take when the site stops. */
const DRAIN_MS = 10_000;

/** Requests that are under way on a server, and when the last one began, by `performance.now()`. */
const underWay = new WeakMap<Server, { responses: Set<ServerResponse>; lastAt: number }>();

/** A request that takes longer does so for other reasons than that the event loop is busy, in milliseconds. */
const SHORT_MS = 20;

const serverOf = (strapi: Core.Strapi): Server => strapi.server.httpServer as unknown as Server;

/** Keeps in mind which requests are under way, from now on. */
export const watchRequests = (strapi: Core.Strapi): void => {
  const server = serverOf(strapi);
  const responses = new Set<ServerResponse>();
  const known = { responses, lastAt: 0 };
  underWay.set(server, known);
  server.prependListener('request', ({ headers }, response) => {
    responses.add(response);
    // Requests of the site to itself do not count: no user waits for them.
    if (!('x-service-delivery' in headers)) known.lastAt = performance.now();
    response.once('close', () => responses.delete(response));
  });
};

/** True while a request that has just come is being answered. */
export const isAnswering = (strapi: Core.Strapi): boolean => {
  const known = underWay.get(serverOf(strapi));
  return Boolean(known?.responses.size) && performance.now() - (known?.lastAt ?? 0) < SHORT_MS;
};

/** Visitors come again within it, in milliseconds. */
const VISIT_MS = 100;

/** True if a request came shortly before. */
export const isVisited = (strapi: Core.Strapi): boolean =>
  performance.now() - (underWay.get(serverOf(strapi))?.lastAt ?? 0) < VISIT_MS;

/**
 * Closes the site's HTTP server: no new connections, and one last answer on each open one. The host destroys plugins
 * before it cuts connections, so requests would meet a half-stopped site. Resolves when idle, after 10 seconds at most.
 */
export const closeServer = async (strapi: Core.Strapi): Promise<void> => {
  const server = serverOf(strapi);
  if (!server.listening) return;
  const { responses = new Set<ServerResponse>() } = underWay.get(server) ?? {};
  const close = (response: ServerResponse): void => {
    if (!response.headersSent) response.setHeader('Connection', 'close');
  };
  server.prependListener('request', (_request, response) => close(response));
  for (const response of responses) close(response);
  server.close();
  const deadline = Date.now() + DRAIN_MS;
  while (responses.size > 0 && Date.now() < deadline) await sleep(10);
  server.closeIdleConnections();
};
