import type { Core } from '@strapi/strapi';
import { featureOfAction } from '../../../shared/contracts/features';
import { ADMIN_ACTIONS } from '../../../shared/contracts/permissions';
import { getOptions } from '../config';
import type { Feature } from '../feature';

const OURS = /plugin::switchboard\.([a-z-]+)/;

const absent = new WeakMap<Core.Strapi, ReadonlySet<string>>();

/** Notes what the host does not know of in this process because the site does without it. */
export const noteAbsent = (strapi: Core.Strapi, features: readonly Feature[]): void => {
  const on = getOptions(strapi).features;
  const types = features
    .filter(({ option }) => option !== undefined && !on[option])
    .flatMap(({ contentTypes, controllers }) => [
      ...Object.keys(contentTypes ?? {}),
      ...Object.keys(controllers ?? {}),
    ]);
  const actions = ADMIN_ACTIONS.filter((action) => {
    const feature = featureOfAction(action);
    return feature !== undefined && !on[feature];
  }).map((action) => action.slice(0, action.indexOf('.')));
  absent.set(strapi, new Set([...types, ...actions]));
};

const isOfAbsent = (strapi: Core.Strapi, text: unknown): boolean => {
  const [, name] = (typeof text === 'string' && OURS.exec(text)) || [];
  return name !== undefined && (absent.get(strapi)?.has(name) ?? false);
};

/** Whether a row of the host is about a content type or an action that the site does without now. */
export const isRowOfAbsent = (strapi: Core.Strapi, row: Record<string, unknown>): boolean =>
  ['action', 'subject', 'key'].some((name) => isOfAbsent(strapi, row[name]));
