import type { Server, ServerResponse } from 'node:http';
import type { Core } from '@strapi/strapi';

/** How long requests that are under way may take when the site stops. */
const DRAIN_MS = 10_000;

const underWay = new WeakMap<Server, Set<ServerResponse>>();

const serverOf = (strapi: Core.Strapi): Server => strapi.server.httpServer as unknown as Server;

/** Keeps in mind which requests are under way, from now on. */
export const watchRequests = (strapi: Core.Strapi): void => {
  const server = serverOf(strapi);
  const responses = new Set<ServerResponse>();
  underWay.set(server, responses);
  server.prependListener('request', (_request, response) => {
    responses.add(response);
    response.once('close', () => responses.delete(response));
  });
};

/**
 * Closes the site's HTTP server: no new connection, a last answer on each that is open, and no end
 * before the requests under way were answered. The host destroys plugins first and cuts its
 * connections afterwards, so without this a request would be served by a site half of which is gone.
 * @returns once nothing is under way, after 10 seconds at the latest.
 */
export const closeServer = async (strapi: Core.Strapi): Promise<void> => {
  const server = serverOf(strapi);
  if (!server.listening) return;
  const responses = underWay.get(server) ?? new Set();
  const close = (response: ServerResponse): void => {
    if (!response.headersSent) response.setHeader('Connection', 'close');
  };
  server.prependListener('request', (_request, response) => close(response));
  for (const response of responses) close(response);
  server.close();
  const deadline = Date.now() + DRAIN_MS;
  while (responses.size > 0 && Date.now() < deadline) {
    await new Promise((resolve) => {
      setTimeout(resolve, 10);
    });
  }
  server.closeIdleConnections();
};
