import { Alert, Box, Button } from '@strapi/design-system';
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
    <Box role="status">
      <Alert
        variant={reason ? 'danger' : 'warning'}
        closeLabel=""
        title={text(reason ? 'banner.switchedOff' : 'banner.inactive')}
        action={
          can('webhooks.update') ? (
            <Button
              variant="secondary"
              loading={isLoading}
              onClick={() =>
                void update({ id: webhook.id, active: true }).then((done) =>
                  outcome(done, 'banner.on')
                )
              }
            >
              {text('banner.switchOn')}
            </Button>
          ) : undefined
        }
      >
        {reason && at
          ? text('banner.why', { reason: why, at: absolute(at) })
          : text('banner.inactive.hint')}
      </Alert>
    </Box>
  );
};
