import type { Context, Next } from 'koa';
import type { Feature, FeatureRoutes } from '../feature';
import type { App } from '../app';

const firstWord = (path: string): string => path.split('/')[1] ?? '';

/** What the addresses of an API begin with that only features which are not there would serve. */
const absentBelow = (
  folder: string,
  api: keyof FeatureRoutes,
  present: readonly Feature[],
  absent: readonly Feature[]
): string[] => {
  const words = (features: readonly Feature[]): Set<string> =>
    new Set(
      features.flatMap(({ routes }) => routes?.[api] ?? []).map(({ path }) => firstWord(path))
    );
  const served = words(present);
  const gone = [...words(absent)].filter((word) => !served.has(word));
  if (gone.length > 0 && served.size === 0) return [`${folder}/`];
  return gone.map((word) => `${folder}/${word}`);
};

const isBelow = (path: string, beginning: string): boolean =>
  path.startsWith(beginning) &&
  (beginning.endsWith('/') || path.length === beginning.length || path[beginning.length] === '/');

/**
 * The host's router says 405 to a POST to an unknown address, because a site's public files take
 * every GET. To a client of a feature that the site does without, that would be an address which is
 * there: it is told 404.
 */
export const answerAbsent = (app: App, present: readonly Feature[], absent: readonly Feature[]) => {
  const api = app.strapi.config
    .get<string>('api.rest.prefix', '/api')
    .replace(/\/+$/, '')
    .toLowerCase();
  const beginnings = [
    ...absentBelow(`${api}/fw-crm/v1`, 'crm', present, absent),
    ...absentBelow(`${api}/service-pos/v1`, 'pos', present, absent),
    ...absentBelow('/switchboard', 'admin', present, absent),
  ];
  return async (ctx: Context, next: Next): Promise<void> => {
    await next();
    if (ctx.status !== 405) return;
    const path = ctx.path.toLowerCase();
    if (!beginnings.some((beginning) => isBelow(path, beginning))) return;
    ctx.remove('Allow');
    const error = { status: 404, name: 'NotFoundError', message: 'Not Found', details: {} };
    ctx.body = { data: null, error };
    ctx.status = 404;
  };
};
