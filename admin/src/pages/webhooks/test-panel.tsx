import { Button, Combobox, ComboboxOption, Field, Flex, Typography } from '@strapi/design-system';
import { CheckCircle, CrossCircle, PaperPlane } from '@strapi/icons';
import { useQueryParams } from '@strapi/strapi/admin';
import { useState } from 'react';
import type { ManagedWebhook, TestResult } from '../../../../shared/contracts/webhooks';
import { CodeBlock, prettyJson } from '../../components/code-block';
import { Panel } from '../../components/panel';
import { useEventNames, useDelivery, useTestWebhook } from '../../services/webhooks';
import { useOutcome } from '../../utils/errors';
import { useText } from '../../utils/text';
import { useLookedAtRecovery } from '../deliveries/recovery-dialog';
import { useCause } from './causes';
import { useEventText } from './event-text';

const PING = 'ping';

/** The receiver's answer, found in the log by the test's delivery id. */
const Result = ({ result }: { result: TestResult }) => {
  const text = useText();
  const cause = useCause();
  const [, setQuery] = useQueryParams<{ delivery?: string }>();
  const { data: delivery } = useDelivery(result.delivery_id);
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

/** The receiver answers again: its failing deliveries need not wait for their next attempt. */
const SendFailing = ({ webhook: { id, health } }: { webhook: ManagedWebhook }) => {
  const text = useText();
  const { look, isLooking, dialog } = useLookedAtRecovery();
  const n = health.failing;
  return (
    <Flex role="status" gap={4} wrap="wrap">
      <Typography>{text('test.failing', { n })}</Typography>
      <Button
        startIcon={<PaperPlane />}
        loading={isLooking}
        onClick={() => look({ webhook: id, state: 'failing' })}
      >
        {text('missed.send', { n })}
      </Button>
      {dialog}
    </Flex>
  );
};

/** Send a test: a ping or an event's example, and the receiver's answer on the screen. */
export const TestPanel = ({ webhook }: { webhook: ManagedWebhook }) => {
  const text = useText();
  const outcome = useOutcome();
  const catalogue = useEventNames();
  const eventText = useEventText();
  const [event, setEvent] = useState(PING);
  const [result, setResult] = useState<TestResult>();
  const [send, { isLoading }] = useTestWebhook();
  const onSend = async (): Promise<void> => {
    setResult(outcome(await send({ id: webhook.id, event: event === PING ? undefined : event })));
  };
  return (
    <Panel title={text('test.title')}>
      <Flex gap={2} alignItems="end" wrap="wrap">
        <Field.Root name="test-event" flex="1" maxWidth="48rem">
          <Field.Label>{text('test.event')}</Field.Label>
          <Combobox
            value={event}
            clearLabel={text('action.clear')}
            onChange={(value) => setEvent(value === undefined ? PING : String(value))}
          >
            <ComboboxOption value={PING}>{PING}</ComboboxOption>
            {(catalogue.data ?? []).map((one) => (
              <ComboboxOption key={one.event} value={one.event}>
                {`${one.event} – ${eventText.label(one)}`}
              </ComboboxOption>
            ))}
          </Combobox>
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
      {result && <Result result={result} />}
      {result?.ok && webhook.active && webhook.health.failing > 0 && (
        <SendFailing webhook={webhook} />
      )}
    </Panel>
  );
};
