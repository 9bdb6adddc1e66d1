import type { IncomingMessage } from 'node:http';
import type { Core } from '@strapi/strapi';
import type { Context, Next } from 'koa';

/** A mail with attachments comes in whole (SendGrid's limit is 30 MB). */
const MAX_BYTES = 32 * 1024 * 1024;
const PATH = 'fw-crm/v1/email/';
/** A content type that no parser of a site takes for its own. */
const UNPARSED_TYPE = 'application/vnd.switchboard.raw';

export interface ProviderBody {
  bytes: Buffer;
  contentType: string;
}

const bodies = new WeakMap<IncomingMessage, ProviderBody>();

/** The bytes that a provider signed; null where there are none, or too many. */
export const providerBody = (request: IncomingMessage): ProviderBody | null =>
  bodies.get(request) ?? null;

/**
 * Comes before the host's body parser, which keeps no bytes, and reads what mail providers post. The
 * signature is over the bytes as they came.
 */
export const keepProviderBodies = (strapi: Core.Strapi) => {
  const prefix = strapi.config.get<string>('api.rest.prefix', '/api').replace(/\/+$/, '');
  const base = `${prefix}/${PATH}`.toLowerCase();
  return async (ctx: Context, next: Next): Promise<void> => {
    if (ctx.method !== 'POST' || !ctx.path.toLowerCase().startsWith(base)) return next();
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of ctx.req) {
      size += (chunk as Buffer).length;
      // Read on for a while, so that the sender gets to hear the answer; then hang up.
      if (size > 2 * MAX_BYTES) break;
      if (size <= MAX_BYTES) chunks.push(chunk as Buffer);
      else chunks.length = 0;
    }
    if (size <= MAX_BYTES) {
      const contentType = ctx.req.headers['content-type'] ?? '';
      bodies.set(ctx.req, { bytes: Buffer.concat(chunks), contentType });
    } else {
      ctx.set('Connection', 'close');
    }
    ctx.req.headers['content-type'] = UNPARSED_TYPE;
    return next();
  };
};
