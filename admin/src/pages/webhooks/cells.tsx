import { Box, Flex, Typography } from '@strapi/design-system';
import type { LastAnswer, WebhookHealth } from '../../../../shared/contracts/overview';
import type { DeliveryStatus } from '../../../../shared/contracts/webhooks';
import { HealthChart } from '../../components/health-chart';
import { Pill } from '../../components/pill';
import { Time } from '../../components/time';
import { useText } from '../../utils/text';
import { useCause } from './causes';

const SHOWN = 2;

/** The first names of a choice of events, and how many more there are. */
export const EventTags = ({ events }: { events: readonly string[] }) => {
  const text = useText();
  if (events.includes('*')) return <Pill variant="primary">{text('webhook.everyEvent')}</Pill>;
  const more = events.length - SHOWN;
  return (
    <Flex gap={1} wrap="wrap" title={events.join(', ')}>
      {events.slice(0, SHOWN).map((event) => (
        <Pill key={event}>{event}</Pill>
      ))}
      {more > 0 && (
        <Typography variant="pi" textColor="neutral600">
          {text('webhook.moreEvents', { n: more })}
        </Typography>
      )}
    </Flex>
  );
};

export const HealthCell = ({ health }: { health: WebhookHealth | undefined }) =>
  health ? (
    <Box width="12rem">
      <HealthChart buckets={health.buckets} counts={health} />
    </Box>
  ) : null;

const VARIANTS = { pending: 'warning', sent: 'success', failed: 'danger' } as const;

interface DeliveryStatusProps {
  status: DeliveryStatus;
  tries: number;
}

/** Pending tells two stories: never tried, and tried in vain so far. */
export const DeliveryStatusBadge = ({ status, tries }: DeliveryStatusProps) => {
  const text = useText();
  if (status === 'pending' && tries > 0) {
    return <Pill variant="danger">{text('delivery.status.failing')}</Pill>;
  }
  return <Pill variant={VARIANTS[status]}>{text(`delivery.status.${status}`)}</Pill>;
};

export const LastAnswerCell = ({ last }: { last: LastAnswer | null }) => {
  const text = useText();
  const cause = useCause();
  if (!last) return <Typography textColor="neutral600">{text('webhook.never')}</Typography>;
  return (
    <Flex direction="column" alignItems="start" gap={1}>
      <DeliveryStatusBadge status={last.status} tries={last.tries} />
      <Typography variant="pi" textColor="neutral600">
        {last.error ? cause.short(last.error) : <Time at={last.at} variant="pi" />}
      </Typography>
    </Flex>
  );
};

interface NextTryProps {
  /** ISO 8601; null where nothing is left to try. */
  at: string | null;
  active: boolean;
  both?: boolean;
}

/** When a delivery is tried next. While its webhook is off, nothing is, whatever its schedule says. */
export const NextTry = ({ at, active, both }: NextTryProps) => {
  const text = useText();
  if (!at) return <>–</>;
  if (!active) return <Typography textColor="neutral600">{text('delivery.next.off')}</Typography>;
  return <Time at={at} both={both} />;
};
