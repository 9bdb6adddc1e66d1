import type { AdminAction } from './permissions';

/** Optional parts of the plugin: `features` in its options. `pos` has the stock. */
export const FEATURE_IDS = ['crm', 'pos'] as const;

export type FeatureId = (typeof FEATURE_IDS)[number];

/** Which of them the site has. */
export type Features = Readonly<Record<FeatureId, boolean>>;

/** By the first word of an action. */
const OWNERS: Readonly<Record<string, FeatureId>> = {
  crm: 'crm',
  connections: 'pos',
  'pos-events': 'pos',
  sales: 'pos',
  mapping: 'pos',
  stock: 'pos',
};

/** The part without which an action means nothing; undefined: it always means something. */
export const featureOfAction = (action: AdminAction): FeatureId | undefined =>
  OWNERS[action.slice(0, action.indexOf('.'))];
