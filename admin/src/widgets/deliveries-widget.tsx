import { Flex, Typography } from '@strapi/design-system';
import { Widget } from '@strapi/strapi/admin';
import { HealthChart, HealthCountsLine } from '../components/health-chart';
import { useHealth } from '../services/webhooks';
import { statusOf } from '../utils/errors';
import { usePolling } from '../utils/polling';
import { useText } from '../utils/text';

const REFRESH_MS = 30_000;

export const DeliveriesWidget = () => {
  const text = useText();
  const health = useHealth(undefined, { pollingInterval: usePolling(REFRESH_MS) });
  if (health.isLoading) return <Widget.Loading />;
  if (statusOf(health.error) === 404) {
    return <Widget.NoData>{text('modules.webhooksOff')}</Widget.NoData>;
  }
  if (!health.data) return <Widget.Error />;
  const { totals, buckets, webhooks } = health.data;
  const off = webhooks.filter(({ disabled_reason: reason }) => reason !== null).length;
  if (totals.sent + totals.failed + totals.pending === 0 && off === 0) {
    return <Widget.NoData>{text('widget.deliveries.empty')}</Widget.NoData>;
  }
  return (
    <Flex direction="column" alignItems="stretch" gap={4} padding={4}>
      <HealthChart buckets={buckets} counts={totals} height={96} />
      <HealthCountsLine counts={totals} />
      {off > 0 && (
        <Typography textColor="danger600">{text('widget.deliveries.off', { n: off })}</Typography>
      )}
    </Flex>
  );
};
