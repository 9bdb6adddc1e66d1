import { useAccess } from '../../permissions';
import { useConnections, usePosEvents } from '../../services/pos';
import { useModules } from '../../services/settings';
import { useHealth } from '../../services/webhooks';
import { allowed, type Need, needsOfQueues, needsOfTills, needsOfWebhooks } from './needs';

const REFRESH_MS = 10_000;

export interface Needs {
  isLoading: boolean;
  /** Something could not be checked: the page must not say that all is well. */
  isUnknown: boolean;
  /** There may be more than `needs`. */
  isPartial: boolean;
  needs: Need[];
}

const polled = (skip: boolean) => ({ pollingInterval: REFRESH_MS, skip });

/** Problems for the current user, as far as they may see them. */
export const useNeeds = (): Needs => {
  const { can } = useAccess();
  const modules = useModules();
  const { data: switches = [], features } = modules.data ?? {};
  const isOn = switches.some(({ id, enabled }) => id === 'webhooks' && enabled);
  const seesWebhooks = can('webhooks.read') && isOn;
  const hasTills = features?.pos ?? false;
  const seesTills = can('connections.read') && hasTills;
  const seesRecords = can('pos-events.read') && hasTills;

  const health = useHealth(undefined, polled(!seesWebhooks));
  const tills = useConnections(undefined, polled(!seesTills));
  const unmapped = usePosEvents(
    { states: ['needs_mapping', 'partially_applied'], perPage: 1 },
    polled(!seesRecords)
  );
  const broken = usePosEvents({ states: ['failed'], perPage: 1 }, polled(!seesRecords));
  const queries = [
    ...(seesWebhooks ? [health] : []),
    ...(seesTills ? [tills] : []),
    ...(seesRecords ? [unmapped, broken] : []),
  ];
  const off: Need[] =
    can('webhooks.read') && modules.data && !isOn
      ? [
          {
            id: 'module-off',
            tone: 'warning',
            text: 'modules.webhooksOff',
            values: {},
            remedies: [],
          },
        ]
      : [];
  const isUnknown = modules.isError || queries.some(({ isError }) => isError);
  return {
    isLoading: modules.isLoading || queries.some(({ isLoading }) => isLoading),
    isUnknown,
    isPartial: isUnknown || (health.data?.webhooks_capped ?? false),
    needs: [
      ...off,
      ...needsOfWebhooks(health.data?.webhooks ?? []),
      ...needsOfTills(tills.data ?? [], {
        needs_mapping: unmapped.data?.meta.pagination.total ?? 0,
        failed: broken.data?.meta.pagination.total ?? 0,
      }),
      // Last: nothing is lost by them.
      ...needsOfQueues(health.data?.paused_queues ?? []),
    ].map((need) => allowed(need, can)),
  };
};
