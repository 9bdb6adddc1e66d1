import type { Context } from 'koa';

/** An answer with a secret in clear is kept by no cache, of a browser or on the way. */
export const forbidStoring = (ctx: Context): void => ctx.set('Cache-Control', 'no-store');
