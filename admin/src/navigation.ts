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

/** The groups of the menu entry CRM (ARCHITECTURE.md). */
export const NAVIGATION: readonly { label: TextKey; entries: readonly NavigationEntry[] }[] = [
  {
    label: 'nav.data',
    entries: [
      { path: 'webhooks', label: 'nav.webhooks', action: 'webhooks.read', module: 'webhooks' },
    ],
  },
  {
    label: 'nav.pos',
    entries: [
      { path: 'connections', label: 'nav.connections', action: 'connections.read' },
      { path: 'events', label: 'nav.events', action: 'pos-events.read' },
      { path: 'stock', label: 'nav.stock', action: 'stock.read' },
    ],
  },
];
