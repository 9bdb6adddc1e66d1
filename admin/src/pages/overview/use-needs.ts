import { useAccess } from '../../permissions';
import { useAttention, useModules } from '../../services/settings';
import { useHealth } from '../../services/webhooks';
import { allowed, type Need, needsOfQueues, needsOfTills, needsOfWebhooks } from './needs';
import { usePolling } from '../../utils/polling';

const REFRESH_MS = 10_000;

export interface Needs {
  isLoading: boolean;
  /** Something could not be checked: the page must not say that all is well. */
  isUnknown: boolean;
  /** There may be more than `needs`. */
  isPartial: boolean;
  needs: Need[];
  /** Webhooks that need attention beyond those of `needs`. */
  more: number;
}

/** Problems for the current user, as far as they may see them. */
export const useNeeds = (): Needs => {
  const { can } = useAccess();
  const modules = useModules();
  const { data: switches = [] } = modules.data ?? {};
  const isOn = switches.some(({ id, enabled }) => id === 'webhooks' && enabled);
  const seesWebhooks = can('webhooks.read') && isOn;
  const pollingInterval = usePolling(REFRESH_MS);
  const health = useHealth(undefined, { pollingInterval, skip: !seesWebhooks });
  const others = useAttention(undefined, { pollingInterval });
  const queries = [...(seesWebhooks ? [health] : []), others];
  const ofWebhooks = needsOfWebhooks(health.data?.webhooks ?? []);
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
    isPartial: isUnknown,
    more: Math.max(0, (health.data?.needing_attention ?? 0) - ofWebhooks.length),
    needs: [
      ...off,
      ...ofWebhooks,
      ...(others.data ? needsOfTills(others.data) : []),
      // Last: nothing is lost by them.
      ...needsOfQueues(health.data?.paused_queues ?? []),
    ].map((need) => allowed(need, can)),
  };
};
