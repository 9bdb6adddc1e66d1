import { AsyncLocalStorage } from 'node:async_hooks';
import type { ChangeSource } from '../../../shared/contracts/crm';
import type { App } from '../app';

const explicit = new AsyncLocalStorage<ChangeSource>();

/** Runs `work` as the action of a form, an import …, whichever request it runs in. */
export const withOrigin = <T>(origin: ChangeSource, work: () => T): T => explicit.run(origin, work);

/** The person or thing behind the current change: the `source` of `contact.tagged` and `contact.untagged`. */
export const currentOrigin = (app: App): ChangeSource => {
  const given = explicit.getStore();
  if (given) return given;
  const route: unknown = app.strapi.requestContext.get()?.state?.route;
  const type = (route as { info?: { type?: string } } | undefined)?.info?.type;
  if (type === 'admin') return 'admin';
  return type === 'content-api' ? 'api' : 'code';
};
