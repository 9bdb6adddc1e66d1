import type { FeatureId, Features } from '../../shared/contracts/features';
import type { ModuleId } from '../../shared/contracts/modules';
import type { AdminAction } from '../../shared/contracts/permissions';
import type { TextKey } from './utils/text';

export interface NavigationEntry {
  path: string;
  label: TextKey;
  /** Any of these opens it. */
  actions: readonly AdminAction[];
  /** Shown only while this module is on. */
  module?: ModuleId;
}

export interface NavigationGroup {
  label: TextKey;
  /** Shown only on a site that has this part of the plugin. */
  feature?: FeatureId;
  entries: readonly NavigationEntry[];
}

/** The groups of the plugin's menu entry (ARCHITECTURE.md#layout); records are added by `useRecordLists`. */
export const NAVIGATION: readonly NavigationGroup[] = [
  {
    label: 'nav.start',
    entries: [
      {
        path: 'overview',
        label: 'nav.overview',
        actions: ['webhooks.read', 'connections.read', 'pos-events.read'],
      },
    ],
  },
  {
    label: 'nav.webhooks',
    entries: [
      { path: 'webhooks', label: 'nav.webhooks', actions: ['webhooks.read'], module: 'webhooks' },
      {
        path: 'deliveries',
        label: 'nav.deliveries',
        actions: ['webhooks.read'],
        module: 'webhooks',
      },
    ],
  },
  {
    label: 'nav.shop',
    feature: 'pos',
    entries: [
      { path: 'sales', label: 'nav.sales', actions: ['sales.read'] },
      { path: 'tills', label: 'nav.tills', actions: ['connections.read'] },
      { path: 'records', label: 'nav.tillRecords', actions: ['pos-events.read'] },
      { path: 'unmapped', label: 'nav.unmapped', actions: ['mapping.manage'] },
      { path: 'stock', label: 'nav.stock', actions: ['stock.read'] },
    ],
  },
  {
    label: 'nav.data',
    entries: [{ path: 'import', label: 'nav.import', actions: ['stock.import', 'crm.import'] }],
  },
];

/** The entries that this user may open now. */
export const openGroups = (
  can: (action: AdminAction) => boolean,
  enabled: ReadonlySet<string>,
  features: Features
): NavigationGroup[] =>
  NAVIGATION.filter(({ feature }) => feature === undefined || features[feature])
    .map(({ label, entries }) => ({
      label,
      entries: entries.filter(
        ({ actions, module }) => actions.some(can) && (module === undefined || enabled.has(module))
      ),
    }))
    .filter(({ entries }) => entries.length > 0);
