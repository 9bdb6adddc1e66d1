import { Flex, Typography } from '@strapi/design-system';
import type { DeliveryState, Health, WebhookSummary } from '../../../../shared/contracts/webhooks';
import { Pill } from '../../components/pill';
import { Time } from '../../components/time';
import { useText } from '../../utils/text';
import { useCause } from './causes';

const SHOWN = 2;

interface EventTagsProps {
  /** The first names of a choice. */
  events: readonly string[];
  /** How many names it has. */
  count: number;
}

export const EventTags = ({ events, count }: EventTagsProps) => {
  const text = useText();
  if (events.includes('*')) return <Pill variant="primary">{text('webhook.everyEvent')}</Pill>;
  const more = count - SHOWN;
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
  health: Pick<Health, 'state'> & Partial<Health>;
  /** With how many deliveries wait and fail. */
  counts?: boolean;
}

/** How a webhook does, and since or until when. */
export const HealthBadge = ({ health, counts }: HealthBadgeProps) => {
  const text = useText();
  const { state, failing_since: since, paused_until: until, waiting = 0, failing = 0 } = health;
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

export const LastAnswerCell = ({ last }: Pick<WebhookSummary, 'last'>) => {
  const text = useText();
  const cause = useCause();
  if (!last) return <Typography textColor="neutral600">{text('webhook.never')}</Typography>;
  return (
    <Flex direction="column" alignItems="start" gap={1}>
      <DeliveryStateBadge state={last.state} />
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
