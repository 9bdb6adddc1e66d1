import type { Core } from '@strapi/strapi';

const LOOK_EVERY_MS = 20;

/**
 * Calls `start` once every plugin's `bootstrap` and the site's own have run: their hook handlers are
 * there then. The host has no signal for it, only `isLoaded`.
 * @returns a function that gives the wait up, for a site that is stopped before it has started.
 */
export const whenLoaded = (strapi: Core.Strapi, start: () => void): (() => void) => {
  const timer = setInterval(() => {
    if (!strapi.isLoaded) return;
    clearInterval(timer);
    start();
  }, LOOK_EVERY_MS);
  return () => clearInterval(timer);
};
