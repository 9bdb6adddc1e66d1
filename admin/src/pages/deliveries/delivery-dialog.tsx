import { Box, Button, Flex, Modal, Typography } from '@strapi/design-system';
import { ArrowRight, Cross, PaperPlane } from '@strapi/icons';
import { styled } from 'styled-components';
import type { Delivery } from '../../../../shared/contracts/webhooks';
import { CodeBlock, prettyJson } from '../../components/code-block';
import { ConfirmButton } from '../../components/confirm-button';
import { CopyButton } from '../../components/copy-button';
import { DefinitionList, headerLines } from '../../components/definition-list';
import { Loaded, NotFound } from '../../components/page-states';
import { RecordLink } from '../../components/record-link';
import { Time, useIsNow } from '../../components/time';
import { useAccess } from '../../permissions';
import { useDelivery, useEndWait, useRetryDelivery, useWebhook } from '../../services/webhooks';
import { curlOf } from '../../utils/curl';
import { useOutcome } from '../../utils/errors';
import { isDueSoon, usePolling } from '../../utils/polling';
import { useText } from '../../utils/text';
import { useCause } from '../webhooks/causes';
import { DeliveryStateBadge, NextTry } from '../webhooks/cells';
import { AttemptTimeline } from './attempt-timeline';
import { WebhookName } from './webhook-name';

const DUE_REFRESH_MS = 2000;
const REFRESH_MS = 10_000;

const Footer = styled(Modal.Footer)`
  flex-wrap: wrap;
  gap: ${({ theme }) => theme.spaces[2]};
`;

/** The log, which gets the focus where the row of a delivery is not on the screen. */
export const LOG_ID = 'switchboard-log';
/** The link of a delivery's row, which gets the focus back. */
export const rowLinkId = (id: number | string): string => `switchboard-delivery-${id}`;

/** The error and the receiver's answer, shown first. */
const Reason = ({ delivery: { error, answer } }: { delivery: Delivery }) => {
  const text = useText();
  const cause = useCause();
  if (!error) return null;
  return (
    <Flex
      role="status"
      direction="column"
      alignItems="stretch"
      gap={3}
      padding={4}
      hasRadius
      background="danger100"
      borderColor="danger200"
    >
      <Typography textColor="danger700" fontWeight="bold">
        {cause.long(error)}
      </Typography>
      {answer && answer.body !== '' && (
        <CodeBlock
          title={text('answer.said')}
          code={prettyJson(answer.body)}
          copied={answer.body}
          copyLabel={text('answer.copy')}
        />
      )}
    </Flex>
  );
};

const Answer = ({ answer, error }: Pick<Delivery, 'answer' | 'error'>) => {
  const text = useText();
  return (
    <>
      <Typography variant="delta" tag="h3">
        {text('answer.title')}
      </Typography>
      {answer ? (
        <>
          <Typography>{text('answer.status', { status: answer.status })}</Typography>
          <CodeBlock
            title={text('answer.headers')}
            code={headerLines(answer.headers)}
            copyLabel={text('answer.headers.copy')}
          />
          {(!error || answer.body === '') && (
            <CodeBlock
              title={text('answer.body')}
              code={answer.body === '' ? text('answer.empty') : prettyJson(answer.body)}
              copied={answer.body}
              copyLabel={text('answer.copy')}
            />
          )}
          {answer.truncated && <Typography variant="pi">{text('answer.truncated')}</Typography>}
        </>
      ) : (
        <Typography textColor="neutral600">{text('answer.none')}</Typography>
      )}
    </>
  );
};

const Detail = ({ delivery, active }: { delivery: Delivery; active: boolean }) => {
  const text = useText();
  const { request, next_attempt_at: next } = delivery;
  return (
    <Flex direction="column" alignItems="stretch" gap={6}>
      <Reason delivery={delivery} />
      <DefinitionList
        rows={[
          [text('delivery.status'), <DeliveryStateBadge key="state" state={delivery.state} />],
          [text('delivery.record'), <RecordLink key="record" subject={delivery.subject} />],
          [
            text('delivery.webhook'),
            <WebhookName key="webhook" id={delivery.webhook_id} name={delivery.webhook_name} />,
          ],
          [text('delivery.tries'), delivery.tries],
          [text('delivery.next'), <NextTry key="next" at={next} active={active} both />],
          [text('delivery.created'), <Time key="created" at={delivery.created_at} both />],
          [text('delivery.id'), delivery.delivery_id],
        ]}
      />
      <AttemptTimeline attempts={delivery.attempts} next={active ? next : null} />
      <Flex justifyContent="space-between" wrap="wrap" gap={2}>
        <Typography variant="delta" tag="h3">
          {text('request.title')}
        </Typography>
        <CopyButton wide value={curlOf(request)} label={text('request.curl')} />
      </Flex>
      <Typography style={{ overflowWrap: 'anywhere' }}>{`POST ${request.url}`}</Typography>
      <CodeBlock
        title={text('request.headers')}
        code={headerLines(request.headers)}
        copyLabel={text('request.headers.copy')}
      />
      <CodeBlock
        title={text('request.body')}
        code={prettyJson(request.body)}
        copied={request.body}
        copyLabel={text('request.body.copy')}
      />
      <Answer answer={delivery.answer} error={delivery.error} />
    </Flex>
  );
};

interface DeliveryDialogProps {
  /** The row's id, or the delivery id that its receiver knows. */
  id: string;
  /** The webhook whose log it is shown over: a delivery of another one is not found here. */
  webhook?: number;
  onClose(): void;
}

/** One delivery, behind its id in the address: a link to it can be shared. */
export const DeliveryDialog = ({ id, webhook, onClose }: DeliveryDialogProps) => {
  const text = useText();
  const outcome = useOutcome();
  const { can } = useAccess();
  const [retry, { isLoading }] = useRetryDelivery();
  const [endWait] = useEndWait();
  const { currentData } = useDelivery(id);
  const isPending = currentData?.status === 'pending';
  const isDue = useIsNow((now) => isDueSoon(currentData?.next_attempt_at ?? null, now));
  const refreshMs = usePolling(isDue ? DUE_REFRESH_MS : REFRESH_MS);
  const query = useDelivery(id, { pollingInterval: isPending ? refreshMs : 0 });
  const isForeign = webhook !== undefined && query.data && query.data.webhook_id !== webhook;
  const shown = isForeign || query.error ? undefined : query.data;
  const { currentData: owner } = useWebhook(shown?.webhook_id ?? 0, { skip: !shown });
  const onRetry = async (rowId: number): Promise<void> => {
    const after = outcome(await retry(rowId));
    if (after) outcome({ data: after }, after.status === 'sent' ? 'delivery.sentAgain' : undefined);
  };
  const onEnd = async (action: 'skip' | 'release', rowId: number): Promise<void> => {
    outcome(
      await endWait({ id: rowId, action }),
      action === 'skip' ? 'delivery.skipped' : 'delivery.released'
    );
  };
  return (
    <Modal.Root open onOpenChange={(open) => !open && onClose()}>
      <Modal.Content
        aria-describedby={undefined}
        onCloseAutoFocus={(event) => {
          event.preventDefault();
          const row = shown && document.getElementById(rowLinkId(shown.id));
          (row ?? document.getElementById(LOG_ID))?.focus();
        }}
      >
        <Modal.Header closeLabel={text('action.close')}>
          <Modal.Title>
            {shown
              ? text('delivery.title', { event: shown.event, id: shown.id })
              : text('delivery.one')}
          </Modal.Title>
        </Modal.Header>
        <Modal.Body>
          {isForeign ? (
            <Box padding={6}>
              <NotFound />
            </Box>
          ) : (
            <Loaded query={query}>
              {(delivery) => <Detail delivery={delivery} active={owner?.active !== false} />}
            </Loaded>
          )}
        </Modal.Body>
        <Footer>
          <Button variant="tertiary" onClick={onClose}>
            {text('action.close')}
          </Button>
          {can('webhooks.update') && shown?.status === 'pending' && (
            <>
              <ConfirmButton
                icon={<Cross />}
                label={text('delivery.skip')}
                question={text('delivery.skip.question')}
                onConfirm={() => onEnd('skip', shown.id)}
              />
              {owner?.ordering === 'by_record' && (
                <ConfirmButton
                  icon={<ArrowRight />}
                  variant="secondary"
                  label={text('delivery.release')}
                  question={text('delivery.release.question')}
                  onConfirm={() => onEnd('release', shown.id)}
                />
              )}
            </>
          )}
          {can('webhooks.update') && shown && (
            <Button
              startIcon={<PaperPlane />}
              loading={isLoading}
              onClick={() => void onRetry(shown.id)}
            >
              {text('delivery.again')}
            </Button>
          )}
        </Footer>
      </Modal.Content>
    </Modal.Root>
  );
};
