import type { Core } from '@strapi/strapi';

/** Writes one line of the level `debug`. */
export type DebugLog = (line: string) => void;

/**
 * What writes a line of the level `debug`, or null where the host's log leaves that level out:
 * `` debugLog(app)?.(`webhook ${id} …`) `` then builds no text. A loop asks once, before it begins.
 *
 * A line names what it is about by the plugin's own ids, with states, causes and times; never a
 * body, an address, a secret, a person, or an id that a till gave.
 * docs/operations.md#one-delivery-in-the-log.
 */
export const debugLog = ({ log }: Pick<Core.Strapi, 'log'>): DebugLog | null =>
  // A site may give its log levels of its own, and then there may be no `debug`.
  log.isDebugEnabled?.() === true ? (line) => void log.debug(`switchboard: ${line}`) : null;

/** A line for each of many; `lineOf` is called only where the level is on. */
export const debugEach = <T>(
  site: Pick<Core.Strapi, 'log'>,
  items: Iterable<T>,
  lineOf: (item: T) => string
): void => {
  const debug = debugLog(site);
  if (!debug) return;
  for (const item of items) debug(lineOf(item));
};
