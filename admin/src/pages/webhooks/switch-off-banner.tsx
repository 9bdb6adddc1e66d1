import { Button, Flex, Typography } from '@strapi/design-system';
import type { Webhook } from '../../../../shared/contracts/webhooks';
import { useAbsoluteTime } from '../../components/time';
import { useAccess } from '../../permissions';
import { useUpdateWebhook } from '../../services/webhooks';
import { useOutcome } from '../../utils/errors';
import { useText } from '../../utils/text';

/** Says that the webhook sends nothing, since when and why, and switches it on again. */
export const SwitchOffBanner = ({ webhook }: { webhook: Webhook }) => {
  const text = useText();
  const absolute = useAbsoluteTime();
  const outcome = useOutcome();
  const { can } = useAccess();
  const [update, { isLoading }] = useUpdateWebhook();
  if (webhook.active) return null;
  const { disabled_at: at, disabled_reason: reason } = webhook;
  const failures = /after (\d+) failed/.exec(reason ?? '')?.[1];
  const why = failures ? text('banner.reason', { n: Number(failures) }) : (reason ?? '');
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
          {failures && text('banner.mend')} {text('banner.inactive.hint')}
        </Typography>
      </Flex>
      {can('webhooks.update') && (
        <Button
          variant="secondary"
          loading={isLoading}
          onClick={() =>
            void update({ id: webhook.id, active: true }).then((done) => outcome(done, 'banner.on'))
          }
        >
          {text('banner.switchOn')}
        </Button>
      )}
    </Flex>
  );
};
