import { Box, Flex, Typography } from '@strapi/design-system';
import type { LastAnswer, WebhookHealth } from '../../../../shared/contracts/overview';
import type { DeliveryState, Health } from '../../../../shared/contracts/webhooks';
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

const STATE_VARIANTS = {
  waiting: 'warning',
  failing: 'danger',
  failed: 'danger',
  sent: 'success',
  test: 'neutral',
} as const;

export const DeliveryStateBadge = ({ state }: { state: DeliveryState }) => {
  const text = useText();
  return <Pill variant={STATE_VARIANTS[state]}>{text(`delivery.state.${state}`)}</Pill>;
};

const HEALTH_VARIANTS = {
  healthy: 'success',
  failing: 'danger',
  paused: 'warning',
  off: 'neutral',
  new: 'primary',
} as const;

interface HealthBadgeProps {
  health: Health;
  /** With how many deliveries wait and fail. */
  counts?: boolean;
}

/** How a webhook does, and since or until when. */
export const HealthBadge = ({ health, counts }: HealthBadgeProps) => {
  const text = useText();
  const { state, failing_since: since, paused_until: until, waiting, failing } = health;
  return (
    <Flex gap={2} wrap="wrap">
      <Pill variant={HEALTH_VARIANTS[state]}>{text(`health.state.${state}`)}</Pill>
      {state === 'failing' && since && (
        <Typography variant="pi" textColor="neutral600">
          {text('health.since')} <Time at={since} variant="pi" textColor="neutral600" />
        </Typography>
      )}
      {state === 'paused' && until && (
        <Typography variant="pi" textColor="neutral600">
          {text('health.until')} <Time at={until} variant="pi" textColor="neutral600" />
        </Typography>
      )}
      {counts && waiting > 0 && (
        <Typography variant="pi" textColor="neutral800">
          {text('health.waiting', { n: waiting })}
        </Typography>
      )}
      {counts && failing > 0 && (
        <Typography variant="pi" textColor="danger600">
          {text('health.failing.short', { n: failing })}
        </Typography>
      )}
    </Flex>
  );
};

/** In the words of a state: pending tells two stories, no attempt that counts and some in vain so far. */
const stateOfAnswer = ({ status, tries }: LastAnswer): DeliveryState => {
  if (status !== 'pending') return status;
  return tries > 0 ? 'failing' : 'waiting';
};

export const LastAnswerCell = ({ last }: { last: LastAnswer | null }) => {
  const text = useText();
  const cause = useCause();
  if (!last) return <Typography textColor="neutral600">{text('webhook.never')}</Typography>;
  return (
    <Flex direction="column" alignItems="start" gap={1}>
      <DeliveryStateBadge state={stateOfAnswer(last)} />
      <Typography variant="pi" textColor="neutral600">
        {last.error ? cause.short(last.error) : <Time at={last.at} variant="pi" />}
      </Typography>
    </Flex>
  );
};

interface NextTryProps {
  /** ISO 8601; null if nothing is left to try. */
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
