import { Button, Flex, Typography } from '@strapi/design-system';
import type { ManagedWebhook } from '../../../../shared/contracts/webhooks';
import { useReason } from '../../components/disabled-reason';
import { useAbsoluteTime } from '../../components/time';
import { useAccess } from '../../permissions';
import { useUpdateWebhook } from '../../services/webhooks';
import { useOutcome } from '../../utils/errors';
import { useText } from '../../utils/text';
import { useWaitingChoice } from './switching-on';

/** Says that the webhook sends nothing, since when and why, and switches it on again. */
export const SwitchOffBanner = ({ webhook }: { webhook: ManagedWebhook }) => {
  const text = useText();
  const absolute = useAbsoluteTime();
  const outcome = useOutcome();
  const say = useReason();
  const { can } = useAccess();
  const [update, { isLoading }] = useUpdateWebhook();
  const { ask, question } = useWaitingChoice();
  if (webhook.active) return null;
  const switchOn = async (): Promise<void> => {
    const waiting = await ask(webhook.id);
    if (waiting === null) return;
    const done = await update({ id: webhook.id, active: true, waiting });
    outcome(done, waiting === 'discard' ? 'banner.discarded' : 'banner.on');
  };
  const { disabled_at: at, disabled_reason: reason } = webhook;
  const code = webhook.disabled_because?.code;
  const why = say(webhook);
  return (
    <Flex
      role="status"
      justifyContent="space-between"
      wrap="wrap"
      gap={4}
      padding={5}
      hasRadius
      background={reason ? 'danger100' : 'warning100'}
      borderColor={reason ? 'danger200' : 'warning200'}
    >
      <Flex direction="column" alignItems="start" gap={1}>
        <Typography fontWeight="bold" textColor="neutral800">
          {text(reason ? 'banner.switchedOff' : 'banner.inactive')}
        </Typography>
        <Typography textColor="neutral800">
          {reason && (at ? text('banner.why', { reason: why, at: absolute(at) }) : `${why}.`)}{' '}
          {code === 'failed_deliveries' && text('banner.mend')}{' '}
          {text(code === 'other_site' ? 'banner.elsewhere.hint' : 'banner.inactive.hint')}
        </Typography>
      </Flex>
      {can('webhooks.update') && (
        <Button variant="secondary" loading={isLoading} onClick={() => void switchOn()}>
          {text('banner.switchOn')}
        </Button>
      )}
      {question}
    </Flex>
  );
};
