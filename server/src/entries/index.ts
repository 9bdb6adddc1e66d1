import type { Feature } from '../feature';
import type { EventMap } from '../hooks';
import { captureWrites, wrapDocuments } from './capture';
import { declareEntries, declareMedia } from './catalogue';
import { FILE } from './rules';
import { checkEntryTypes, type EntryTypes, getEntryTypes, namesEntryTypes } from './types';
import type { App } from '../app';

/** Sites whose content types are complete: all their plugins have registered. */
const listening = new WeakSet<App>();

const declare = (types: EntryTypes): EventMap => {
  const file = types.get(FILE);
  return {
    ...declareEntries([...types.values()].filter(({ uid }) => uid !== FILE)),
    ...(file && declareMedia(file.shape)),
  };
};

/** Webhooks for every event get these as well, and their owner should not learn it from a receiver's log. */
const announce = (app: App, types: EntryTypes): void => {
  const entries = [...types.keys()].filter((uid) => uid !== FILE);
  const named = [
    ...(entries.length > 0 ? [`sources.entries: entries of ${entries.join(', ')}`] : []),
    ...(types.has(FILE) ? ['sources.media: files of the media library'] : []),
  ];
  if (named.length === 0) return;
  app.log.info(
    `switchboard: ${named.join('; ')} are sent to webhooks that ask for their events, and to those for every event (*)`
  );
};

/** Content types of the site's own as sources of events; docs/any-content-type.md. */
export const entries: Feature = {
  register(app) {
    // Without the option nothing is registered, so it costs nothing.
    if (!namesEntryTypes(app)) return;
    let declared: EventMap | undefined;
    wrapDocuments(app, () => (listening.has(app) ? getEntryTypes(app) : new Map()));
    app.hooks.get('service_crm_webhook_events').register(function entryEvents(map) {
      declared ??= declare(getEntryTypes(app));
      return { ...map, ...declared };
    });
  },
  bootstrap(app) {
    if (!namesEntryTypes(app)) return;
    checkEntryTypes(app);
    listening.add(app);
    captureWrites(app);
    announce(app, getEntryTypes(app));
  },
};
