import type { FeatureId, Features } from '../../shared/contracts/features';
import type { ModuleId } from '../../shared/contracts/modules';
import type { AdminAction } from '../../shared/contracts/permissions';
import type { TextKey } from './utils/text';

export interface NavigationEntry {
  path: string;
  label: TextKey;
  action: AdminAction;
  /** Shown only while this module is on. */
  module?: ModuleId;
}

export interface NavigationGroup {
  label: TextKey;
  /** Shown only on a site that has this part of the plugin. */
  feature?: FeatureId;
  entries: readonly NavigationEntry[];
}

/** The groups of the menu entry CRM (ARCHITECTURE.md#layout). */
export const NAVIGATION: readonly NavigationGroup[] = [
  {
    label: 'nav.data',
    entries: [
      { path: 'webhooks', label: 'nav.webhooks', action: 'webhooks.read', module: 'webhooks' },
    ],
  },
  {
    label: 'nav.pos',
    feature: 'pos',
    entries: [
      { path: 'connections', label: 'nav.connections', action: 'connections.read' },
      { path: 'events', label: 'nav.events', action: 'pos-events.read' },
      { path: 'stock', label: 'nav.stock', action: 'stock.read' },
    ],
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
        ({ action, module }) => can(action) && (module === undefined || enabled.has(module))
      ),
    }))
    .filter(({ entries }) => entries.length > 0);
