import type { FeatureId, Features } from '../../shared/contracts/features';
import type { Feature, RouteConfig } from './feature';
import { guardedRoute, tillRoute } from './http/guarded-route';

const NAMED = ['contentTypes', 'services', 'controllers', 'policies'] as const;

type Parts = { [Part in (typeof NAMED)[number]]: NonNullable<Feature[Part]> };

export const isOn = ({ option }: { option?: FeatureId }, on: Features): boolean =>
  option === undefined || on[option];

/** A route as readers of the export see it; `RouteConfig` would pack the types of the features. */
type Route = { method: string; path: string };

/**
 * The features' parts in the shape of the host's loader, and a way to leave some out. The loader reads a plugin's
 * export, calls `config.validator` with the options, applies extensions, and then takes the parts by their enumerable
 * keys. So the validator calls `offer` in time. Absent parts stay readable: otherwise extensions of them
 * (`src/extensions`) would be taken for new content types.
 */
export const createParts = (features: readonly Feature[]) => {
  const parts = Object.fromEntries(
    NAMED.map((part) => [part, Object.assign({}, ...features.map((feature) => feature[part]))])
  ) as Parts;
  const routes = {
    crm: { type: 'content-api', prefix: '/fw-crm/v1', routes: [] as Route[] },
    pos: { type: 'content-api', prefix: '/service-pos/v1', routes: [] as Route[] },
    admin: { type: 'admin', routes: [] as Route[] },
  };

  /** May be called again: a process may load a site after another one, with other options. */
  const offer = (on: Features): void => {
    for (const feature of features)
      for (const part of NAMED)
        for (const name of Object.keys(feature[part] ?? {}))
          Object.defineProperty(parts[part], name, { enumerable: isOn(feature, on) });
    const offered = features.filter((feature) => isOn(feature, on));
    const routesOf = (api: keyof typeof routes): RouteConfig[] =>
      offered.flatMap((feature) => feature.routes?.[api] ?? []);
    routes.crm.routes = routesOf('crm').map(guardedRoute);
    routes.pos.routes = routesOf('pos').map(tillRoute);
    routes.admin.routes = routesOf('admin').map(guardedRoute);
  };
  offer({ crm: true, pos: true });

  return { ...parts, routes, offer };
};
