import type { Core } from '@strapi/strapi';
import type { Context } from 'koa';

/** What a feature gives the host as a controller: made once a process, with a method for each action. */
export type ControllerFactory<HostContext extends Context = Context> = (context: {
  strapi: Core.Strapi;
}) => Record<string, (ctx: HostContext) => Promise<void>>;
