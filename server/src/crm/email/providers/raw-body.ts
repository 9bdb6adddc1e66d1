import type { IncomingMessage } from 'node:http';
import type { Core } from '@strapi/strapi';
import type { Context, Next } from 'koa';
import { type BoundedBody, createBodyBudget, readBoundedBody } from '../../../http/bounded-body';
import { leaveUnparsed, typeOfUnparsed } from '../../../http/unparsed';

const MIB = 1024 * 1024;

/** SendGrid posts events in batches of at most 768 kB; Mailgun posts each by itself. */
const EVENTS_MAX = MIB;
/** A mail with its attachments comes in whole: of SendGrid up to 30 MB, of Mailgun up to 25. */
const MAIL_MAX = 32 * MIB;
/** Of all posts that are under way: whoever posts has shown no signature yet. */
const TOTAL_MAX = 32 * MIB;
/** Providers sit in data centres: what has not come by then is not coming. */
const DEADLINE_MS = 30_000;

const PATH = 'fw-crm/v1/email/';
const budget = createBodyBudget(TOTAL_MAX);

/** Reads a post, whose bytes are what a provider signs; `http/bounded-body.ts`. */
export const readProviderBody = (request: IncomingMessage): Promise<BoundedBody> => {
  const isMail = /^multipart\/form-data/i.test(typeOfUnparsed(request));
  const bytes = isMail ? MAIL_MAX : EVENTS_MAX;
  return readBoundedBody(request, { bytes, deadlineMs: DEADLINE_MS, budget });
};

/**
 * Comes before the host's body parser, which keeps no bytes: what mail providers post is left unread
 * for the route, which reads it only where a provider is configured.
 */
export const leaveProviderPostsUnread = (strapi: Core.Strapi) => {
  const prefix = strapi.config.get<string>('api.rest.prefix', '/api').replace(/\/+$/, '');
  const base = `${prefix}/${PATH}`.toLowerCase();
  return async (ctx: Context, next: Next): Promise<void> => {
    if (ctx.method === 'POST' && ctx.path.toLowerCase().startsWith(base)) {
      leaveUnparsed(ctx.req);
    }
    await next();
  };
};
