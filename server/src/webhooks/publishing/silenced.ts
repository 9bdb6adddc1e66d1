import type { Core } from '@strapi/strapi';

const silenced = new WeakSet<Core.Strapi>();

/** Whether writes on this node become events: `strapi.service('plugin::switchboard.sources')` says so. */
export const setSilenced = (strapi: Core.Strapi, isSilenced: boolean): void => {
  if (isSilenced) silenced.add(strapi);
  else silenced.delete(strapi);
};

/** Writes on this node are to send no events, for a migration that should stay silent. */
export const isSilenced = (strapi: Core.Strapi): boolean => silenced.has(strapi);
