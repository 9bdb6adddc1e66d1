import { Button, Flex, Modal, Typography } from '@strapi/design-system';
import { PaperPlane } from '@strapi/icons';
import type { Delivery } from '../../../../shared/contracts/webhooks';
import { CodeBlock, prettyJson } from '../../components/code-block';
import { CopyButton } from '../../components/copy-button';
import { DefinitionList, headerLines } from '../../components/definition-list';
import { Loaded } from '../../components/page-states';
import { Time } from '../../components/time';
import { useAccess } from '../../permissions';
import { useDelivery, useRetryDelivery } from '../../services/webhooks';
import { curlOf } from '../../utils/curl';
import { useOutcome } from '../../utils/errors';
import { useText } from '../../utils/text';
import { AttemptTimeline } from './attempt-timeline';
import { useCause } from './causes';
import { DeliveryStatusBadge, NextTry } from './cells';

const REFRESH_MS = 2000;

const Detail = ({ delivery, active }: { delivery: Delivery; active: boolean }) => {
  const text = useText();
  const cause = useCause();
  const { request, answer, error, next_attempt_at: next } = delivery;
  const status = <DeliveryStatusBadge status={delivery.status} tries={delivery.tries} />;
  return (
    <Flex direction="column" alignItems="stretch" gap={6}>
      <DefinitionList
        rows={[
          [text('delivery.status'), status],
          [text('delivery.tries'), delivery.tries],
          [text('delivery.next'), <NextTry key="next" at={next} active={active} both />],
          [text('delivery.created'), <Time key="created" at={delivery.created_at} both />],
        ]}
      />
      {error && (
        <Typography textColor="danger600" role="status">
          {cause.long(error)}
        </Typography>
      )}
      <AttemptTimeline attempts={delivery.attempts} next={active ? next : null} />
      <Flex justifyContent="space-between">
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
          <CodeBlock
            title={text('answer.body')}
            code={answer.body === '' ? text('answer.empty') : prettyJson(answer.body)}
            copied={answer.body}
            copyLabel={text('answer.copy')}
          />
          {answer.truncated && <Typography variant="pi">{text('answer.truncated')}</Typography>}
        </>
      ) : (
        <Typography textColor="neutral600">{text('answer.none')}</Typography>
      )}
    </Flex>
  );
};

interface DeliveryDialogProps {
  id: number;
  /** Whether its webhook is on: nothing is tried while it is off. */
  active: boolean;
  onClose(): void;
}

/** One delivery, behind its id in the address: a link to it can be shared. */
export const DeliveryDialog = ({ id, active, onClose }: DeliveryDialogProps) => {
  const text = useText();
  const outcome = useOutcome();
  const { can } = useAccess();
  const [retry, { isLoading }] = useRetryDelivery();
  const { currentData } = useDelivery(id);
  const query = useDelivery(id, {
    pollingInterval: currentData?.status === 'pending' ? REFRESH_MS : 0,
  });
  const onRetry = async (): Promise<void> => {
    const after = outcome(await retry(id));
    if (after) outcome({ data: after }, after.status === 'sent' ? 'delivery.sentAgain' : undefined);
  };
  return (
    <Modal.Root open onOpenChange={(open) => !open && onClose()}>
      <Modal.Content aria-describedby={undefined}>
        <Modal.Header closeLabel={text('action.close')}>
          <Modal.Title>
            {text('delivery.title', { event: query.data?.event ?? '', id })}
          </Modal.Title>
        </Modal.Header>
        <Modal.Body>
          <Loaded query={query}>
            {(delivery) => <Detail delivery={delivery} active={active} />}
          </Loaded>
        </Modal.Body>
        <Modal.Footer>
          <Button variant="tertiary" onClick={onClose}>
            {text('action.close')}
          </Button>
          {can('webhooks.update') && (
            <Button startIcon={<PaperPlane />} loading={isLoading} onClick={() => void onRetry()}>
              {text('delivery.again')}
            </Button>
          )}
        </Modal.Footer>
      </Modal.Content>
    </Modal.Root>
  );
};
