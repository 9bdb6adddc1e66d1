import { Button, Flex } from '@strapi/design-system';
import { PaperPlane } from '@strapi/icons';
import { type LogFilter, useCauses } from '../../services/webhooks';
import { usePolling } from '../../utils/polling';
import { useText } from '../../utils/text';
import { recoveryFilterOf } from './log-filter';
import { useLookedAtRecovery } from './recovery-dialog';

const REFRESH_MS = 10_000;

interface RecoveryButtonsProps {
  filter: LogFilter;
  /** Rows of deliveries that were picked. */
  chosen: ReadonlySet<number>;
  onStarted(): void;
}

/** Sends deliveries again, the picked ones or all that match: first it says which they are. */
export const RecoveryButtons = ({ filter, chosen, onStarted }: RecoveryButtonsProps) => {
  const text = useText();
  const { look, isLooking, dialog } = useLookedAtRecovery(onStarted);
  const causes = useCauses(filter, { pollingInterval: usePolling(REFRESH_MS) });
  const failing = (causes.data?.data ?? []).reduce((sum, { count }) => sum + count, 0);
  return (
    <Flex gap={2} wrap="wrap">
      <Button
        size="S"
        variant="secondary"
        startIcon={<PaperPlane />}
        disabled={chosen.size === 0}
        loading={isLooking}
        onClick={() => look({ ids: [...chosen] })}
      >
        {text('recovery.chosen', { n: chosen.size })}
      </Button>
      <Button
        size="S"
        variant="secondary"
        startIcon={<PaperPlane />}
        disabled={failing === 0}
        loading={isLooking}
        onClick={() => look(recoveryFilterOf(filter))}
      >
        {text('recovery.all', { n: failing })}
      </Button>
      {dialog}
    </Flex>
  );
};
