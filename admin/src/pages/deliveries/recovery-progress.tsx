import { Button, Flex, ProgressBar, Typography } from '@strapi/design-system';
import { styled } from 'styled-components';
import type { Recovery } from '../../../../shared/contracts/webhooks';
import { RowLink } from '../../components/row-link';
import { useNow } from '../../components/time';
import { useAccess } from '../../permissions';
import { useRecoveries, useSteerRecovery } from '../../services/webhooks';
import { useOutcome } from '../../utils/errors';
import { usePolling } from '../../utils/polling';
import { useText } from '../../utils/text';

const RUNNING_MS = 2000;
const IDLE_MS = 30_000;
/** How long a recovery that ended is still shown. */
const SHOWN_FOR_MS = 3_600_000;

const Bar = styled(ProgressBar)`
  width: 100%;
  background-color: ${({ theme }) => theme.colors.neutral200};

  > * {
    background-color: ${({ theme }) => theme.colors.primary600};
  }
`;

const isOpen = ({ state }: Recovery): boolean => state === 'running' || state === 'paused';

const One = ({ recovery }: { recovery: Recovery }) => {
  const text = useText();
  const outcome = useOutcome();
  const { can } = useAccess();
  const [steer, { isLoading }] = useSteerRecovery();
  const { id, state, matching, sent, failed } = recovery;
  const done = matching === 0 ? 100 : Math.round(((sent + failed) / matching) * 100);
  const ask = (action: 'pause' | 'resume' | 'cancel'): void => {
    void steer({ id, action }).then((answer) => outcome(answer));
  };
  return (
    <Flex
      role="group"
      aria-label={text('recovery.one', { id })}
      gap={4}
      wrap="wrap"
      padding={3}
      hasRadius
      background="neutral100"
    >
      <Flex direction="column" alignItems="stretch" gap={2} flex="1" minWidth="24rem">
        <Typography role="status">
          {text(`recovery.state.${state}`)} {text('recovery.progress', { sent, failed, matching })}
        </Typography>
        <Bar value={done} size="S" aria-label={text('recovery.one', { id })} />
      </Flex>
      <Flex gap={2} wrap="wrap">
        <RowLink to={`/plugins/switchboard/deliveries?recovery=${id}`}>
          {text('recovery.results')}
        </RowLink>
        {can('webhooks.update') && isOpen(recovery) && (
          <>
            <Button
              size="S"
              variant="tertiary"
              disabled={isLoading}
              onClick={() => ask(state === 'paused' ? 'resume' : 'pause')}
            >
              {text(state === 'paused' ? 'recovery.resume' : 'recovery.pause')}
            </Button>
            <Button
              size="S"
              variant="danger-light"
              disabled={isLoading}
              onClick={() => ask('cancel')}
            >
              {text('recovery.cancel')}
            </Button>
          </>
        )}
      </Flex>
    </Flex>
  );
};

/** Recoveries that are running or ended lately; shown on every page. */
export const RecoveryProgress = () => {
  const now = useNow();
  const { data } = useRecoveries();
  const isRunning = data?.data.some(isOpen) ?? false;
  const recoveries = useRecoveries(undefined, {
    pollingInterval: usePolling(isRunning ? RUNNING_MS : IDLE_MS),
  });
  const shown = (recoveries.data?.data ?? []).filter(
    (one) => isOpen(one) || (one.finished_at && now - Date.parse(one.finished_at) < SHOWN_FOR_MS)
  );
  return (
    <>
      {shown.map((recovery) => (
        <One key={recovery.id} recovery={recovery} />
      ))}
    </>
  );
};
