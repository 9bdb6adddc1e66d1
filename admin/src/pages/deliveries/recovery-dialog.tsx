import { Button, Flex, Modal, Typography } from '@strapi/design-system';
import { PaperPlane } from '@strapi/icons';
import { type ReactNode, useState } from 'react';
import type { RecoveryFilter, RecoveryPreview } from '../../../../shared/contracts/webhooks';
import { FocusBack } from '../../components/focus-back';
import { Time } from '../../components/time';
import { usePreviewRecovery, useStartRecovery, useWebhook } from '../../services/webhooks';
import { useOutcome } from '../../utils/errors';
import { useText } from '../../utils/text';
import { useCause } from '../webhooks/causes';
import { WebhookName } from './webhook-name';

const WEBHOOKS_SHOWN = 10;

const NamedWebhook = ({ id }: { id: number }) => {
  const { data } = useWebhook(id);
  return <WebhookName id={id} name={data?.name ?? null} />;
};

const Preview = ({ preview }: { preview: RecoveryPreview }) => {
  const text = useText();
  const cause = useCause();
  const { matching, by_webhook: webhooks, oldest_at: oldest, sample } = preview;
  return (
    <Flex direction="column" alignItems="stretch" gap={4}>
      <Typography>
        {text('recovery.matching', { n: matching })}{' '}
        {oldest && (
          <>
            {text('recovery.oldest')} <Time at={oldest} both />
          </>
        )}
      </Typography>
      <Typography textColor="neutral600">{text('recovery.same')}</Typography>
      <Flex tag="ul" direction="column" alignItems="start" gap={1}>
        {webhooks.slice(0, WEBHOOKS_SHOWN).map(({ webhook_id: id, count }) => (
          <Flex tag="li" key={id} gap={2}>
            <NamedWebhook id={id} />
            <Typography textColor="neutral600">{text('log.total', { n: count })}</Typography>
          </Flex>
        ))}
        {webhooks.length > WEBHOOKS_SHOWN && (
          <Typography tag="li" textColor="neutral600">
            {text('recovery.moreWebhooks', { n: webhooks.length - WEBHOOKS_SHOWN })}
          </Typography>
        )}
      </Flex>
      {sample.length > 0 && (
        <Typography variant="sigma" textColor="neutral600" tag="h3">
          {text('recovery.sample')}
        </Typography>
      )}
      <Flex tag="ul" direction="column" alignItems="start" gap={1}>
        {sample.map(({ id, event, subject, error }) => (
          <Flex tag="li" key={id} gap={2} wrap="wrap">
            <Typography fontWeight="bold">{event}</Typography>
            <Typography>{subject?.label ?? ''}</Typography>
            <Typography textColor="danger600">{error ? cause.short(error) : ''}</Typography>
          </Flex>
        ))}
      </Flex>
    </Flex>
  );
};

interface LookedAtRecovery {
  /** Shows what a filter would send again, and offers to do it. */
  look(filter: RecoveryFilter): void;
  isLooking: boolean;
  /** To be put on the page. */
  dialog: ReactNode;
}

/** Sending again what failed, after a look at which deliveries they are. */
export const useLookedAtRecovery = (onStarted?: () => void): LookedAtRecovery => {
  const text = useText();
  const outcome = useOutcome();
  const [preview, setPreview] = useState<RecoveryPreview>();
  const [look, looking] = usePreviewRecovery();
  const [start, starting] = useStartRecovery();
  const onLook = async (wanted: RecoveryFilter): Promise<void> => {
    setPreview(outcome(await look(wanted)));
  };
  const onStart = async (id: string): Promise<void> => {
    const started = outcome(await start(id), 'recovery.started');
    setPreview(undefined);
    if (started) onStarted?.();
  };
  return {
    look: (filter) => void onLook(filter),
    isLooking: looking.isLoading,
    dialog: (
      <Modal.Root
        open={preview !== undefined}
        onOpenChange={(open) => !open && setPreview(undefined)}
      >
        <Modal.Content aria-describedby={undefined}>
          <FocusBack />
          <Modal.Header closeLabel={text('action.close')}>
            <Modal.Title>{text('recovery.title')}</Modal.Title>
          </Modal.Header>
          <Modal.Body>{preview && <Preview preview={preview} />}</Modal.Body>
          <Modal.Footer>
            <Button variant="tertiary" onClick={() => setPreview(undefined)}>
              {text('action.cancel')}
            </Button>
            {preview && (
              <Button
                startIcon={<PaperPlane />}
                disabled={preview.matching === 0}
                loading={starting.isLoading}
                onClick={() => void onStart(preview.preview_id)}
              >
                {text('recovery.start', { n: preview.matching })}
              </Button>
            )}
          </Modal.Footer>
        </Modal.Content>
      </Modal.Root>
    ),
  };
};
