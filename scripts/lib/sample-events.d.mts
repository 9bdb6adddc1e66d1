import type { declareEntries, declareMedia } from '../../server/src/entries/catalogue';
import type { ENTRY_EVENTS } from '../../server/src/entries/rules';
import type { createDescriber } from '../../server/src/entries/types';
import type { EventMap } from '../../server/src/hooks';

export declare const sampleEvents: (entries: {
  createDescriber: typeof createDescriber;
  declareEntries: typeof declareEntries;
  declareMedia: typeof declareMedia;
  ENTRY_EVENTS: typeof ENTRY_EVENTS;
}) => EventMap;
