import {
  Button,
  Field,
  Flex,
  SingleSelect,
  SingleSelectOption,
  Typography,
} from '@strapi/design-system';
import { CheckCircle, CrossCircle, PaperPlane } from '@strapi/icons';
import { useQueryParams } from '@strapi/strapi/admin';
import { useState } from 'react';
import type { TestResult } from '../../../../shared/contracts/webhooks';
import { CodeBlock, prettyJson } from '../../components/code-block';
import { Panel } from '../../components/panel';
import { useCatalogue, useDeliveries, useTestWebhook } from '../../services/webhooks';
import { useOutcome } from '../../utils/errors';
import { useText } from '../../utils/text';
import { useCause } from './causes';

const PING = 'ping';

/** What the receiver answered, found again in the log by the test's delivery id. */
const Result = ({ webhookId, result }: { webhookId: number; result: TestResult }) => {
  const text = useText();
  const cause = useCause();
  const [, setQuery] = useQueryParams<{ delivery?: string }>();
  const log = useDeliveries({ webhookId });
  const delivery = log.data?.data.find((one) => one.delivery_id === result.delivery_id);
  const status = result.response_code;
  return (
    <Flex direction="column" alignItems="stretch" gap={3} role="status" aria-live="polite">
      <Flex gap={2} wrap="wrap">
        {result.ok ? (
          <CheckCircle fill="success600" aria-hidden />
        ) : (
          <CrossCircle fill="danger600" aria-hidden />
        )}
        <Typography fontWeight="bold" textColor={result.ok ? 'success600' : 'danger600'}>
          {text(result.ok ? 'test.ok' : 'test.failed')}
        </Typography>
        {status !== null && <Typography>{text('answer.status', { status })}</Typography>}
        <Typography textColor="neutral600">
          {text('answer.duration', { ms: result.duration_ms })}
        </Typography>
        {delivery && (
          <Button variant="ghost" onClick={() => setQuery({ delivery: String(delivery.id) })}>
            {text('test.details')}
          </Button>
        )}
      </Flex>
      {result.error && <Typography>{cause.long(result.error)}</Typography>}
      {delivery?.answer && delivery.answer.body !== '' && (
        <CodeBlock
          title={text('answer.body')}
          code={prettyJson(delivery.answer.body)}
          copied={delivery.answer.body}
          copyLabel={text('answer.copy')}
        />
      )}
    </Flex>
  );
};

/** Send a test: a ping or an event's example, and the receiver's answer on the screen. */
export const TestPanel = ({ webhookId }: { webhookId: number }) => {
  const text = useText();
  const outcome = useOutcome();
  const catalogue = useCatalogue();
  const [event, setEvent] = useState(PING);
  const [result, setResult] = useState<TestResult>();
  const [send, { isLoading }] = useTestWebhook();
  const onSend = async (): Promise<void> => {
    setResult(outcome(await send({ id: webhookId, event: event === PING ? undefined : event })));
  };
  return (
    <Panel title={text('test.title')}>
      <Flex gap={2} alignItems="end" wrap="wrap">
        <Field.Root name="test-event" minWidth="28rem">
          <Field.Label>{text('test.event')}</Field.Label>
          <SingleSelect value={event} onChange={(value) => setEvent(String(value))}>
            <SingleSelectOption value={PING}>{PING}</SingleSelectOption>
            {(catalogue.data ?? []).map((one) => (
              <SingleSelectOption key={one.event} value={one.event}>
                {`${one.event} – ${one.label}`}
              </SingleSelectOption>
            ))}
          </SingleSelect>
        </Field.Root>
        <Button
          size="L"
          startIcon={<PaperPlane />}
          loading={isLoading}
          onClick={() => void onSend()}
        >
          {text('test.send')}
        </Button>
      </Flex>
      {result && <Result webhookId={webhookId} result={result} />}
    </Panel>
  );
};
