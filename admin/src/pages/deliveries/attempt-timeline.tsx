import { Badge, Box, Flex, Typography } from '@strapi/design-system';
import { CheckCircle, Clock, CrossCircle } from '@strapi/icons';
import type { ReactNode } from 'react';
import type { Attempt } from '../../../../shared/contracts/webhooks';
import { Time } from '../../components/time';
import { useText } from '../../utils/text';
import { useCause } from '../webhooks/causes';

interface StepProps {
  icon: ReactNode;
  last?: boolean;
  children: ReactNode;
}

const Step = ({ icon, last, children }: StepProps) => (
  <Flex tag="li" gap={3} alignItems="stretch">
    <Flex direction="column" gap={1} aria-hidden>
      {icon}
      {!last && <Box width="2px" background="neutral200" flex="1" minHeight="1.6rem" />}
    </Flex>
    <Flex direction="column" alignItems="start" gap={1} paddingBottom={4}>
      {children}
    </Flex>
  </Flex>
);

interface AttemptTimelineProps {
  attempts: readonly Attempt[];
  /** When the next attempt is due; ISO 8601. */
  next: string | null;
}

/** The attempts in order, each with its cause in plain words, and the next one. */
export const AttemptTimeline = ({ attempts, next }: AttemptTimelineProps) => {
  const text = useText();
  const cause = useCause();
  return (
    <Flex direction="column" alignItems="stretch" gap={3}>
      <Typography variant="delta" tag="h3">
        {text('attempts.title')}
      </Typography>
      <Flex tag="ol" direction="column" alignItems="stretch">
        {attempts.map((attempt, index) => (
          <Step
            // Attempts have no id; they are only ever appended.
            key={`${attempt.at}-${index}`}
            last={index === attempts.length - 1 && !next}
            icon={
              attempt.error ? <CrossCircle fill="danger600" /> : <CheckCircle fill="success600" />
            }
          >
            <Flex gap={2} wrap="wrap">
              <Typography fontWeight="bold">
                {attempt.error
                  ? cause.short(attempt.error)
                  : text('answer.status', { status: attempt.answer?.status ?? 0 })}
              </Typography>
              <Typography textColor="neutral600">
                {text('answer.duration', { ms: attempt.duration_ms })}
              </Typography>
              {attempt.manual && <Badge>{text('attempts.manual')}</Badge>}
            </Flex>
            <Time at={attempt.at} both variant="pi" textColor="neutral600" />
            {attempt.error && <Typography>{cause.long(attempt.error)}</Typography>}
          </Step>
        ))}
        {next && (
          <Step last icon={<Clock fill="neutral500" />}>
            <Typography fontWeight="bold">
              {text(attempts.length === 0 ? 'attempts.first' : 'attempts.next')}
            </Typography>
            <Time at={next} both variant="pi" textColor="neutral600" />
          </Step>
        )}
      </Flex>
    </Flex>
  );
};
