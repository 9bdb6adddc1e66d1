import type { Context, Next } from 'koa';
import type { App } from '../app';

const MESSAGE = 'Send JSON: these routes take no multipart form.';

/**
 * No route of the plugin takes a multipart form that the host parses, and the host answers a form
 * without a boundary with a 500. Refused before its parser, which would also write files. Routes
 * that read a body themselves have hidden its type from the host by then.
 */
export const refuseForms = (app: App) => {
  const api = app.strapi.config
    .get<string>('api.rest.prefix', '/api')
    .replace(/\/+$/, '')
    .toLowerCase();
  const folders = [`${api}/fw-crm/v1/`, `${api}/service-pos/v1/`, '/switchboard/'];
  return async (ctx: Context, next: Next): Promise<void> => {
    const isForm = /^\s*multipart\//i.test(ctx.req.headers['content-type'] ?? '');
    const path = isForm ? ctx.path.toLowerCase() : '';
    if (!isForm || !folders.some((folder) => path.startsWith(folder))) return next();
    const error = { status: 415, name: 'UnsupportedMediaTypeError', message: MESSAGE, details: {} };
    ctx.status = 415;
    ctx.body = { data: null, error };
  };
};
