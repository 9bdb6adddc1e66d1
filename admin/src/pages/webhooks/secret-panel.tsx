import {
  Button,
  Field,
  Flex,
  SingleSelect,
  SingleSelectOption,
  TextInput,
  Typography,
} from '@strapi/design-system';
import { ArrowsCounterClockwise, Eye, EyeStriked } from '@strapi/icons';
import { useState } from 'react';
import type { ManagedWebhook, WebhookWithSecret } from '../../../../shared/contracts/webhooks';
import { ConfirmButton } from '../../components/confirm-button';
import { CopyButton } from '../../components/copy-button';
import { Panel } from '../../components/panel';
import { ShownOnce } from '../../components/shown-once';
import { Time, useNow } from '../../components/time';
import { useAccess } from '../../permissions';
import { useReveal, useRotateSecret } from '../../services/webhooks';
import { useOutcome } from '../../utils/errors';
import { useText } from '../../utils/text';

/** How long the old secret may go on signing, in hours; longer is refused by the server. */
const OVERLAPS = [0, 1, 24, 168] as const;

interface RotateQuestionProps {
  hours: number;
  onChange(hours: number): void;
}

const RotateQuestion = ({ hours, onChange }: RotateQuestionProps) => {
  const text = useText();
  return (
    <Flex direction="column" alignItems="stretch" gap={4} width="100%">
      <Typography>
        {hours === 0 ? text('secret.rotate.question') : text('secret.rotate.overlap', { n: hours })}
      </Typography>
      <Field.Root name="overlap">
        <Field.Label>{text('secret.overlap')}</Field.Label>
        <SingleSelect value={String(hours)} onChange={(value) => onChange(Number(value))}>
          {OVERLAPS.map((n) => (
            <SingleSelectOption key={n} value={String(n)}>
              {text(n === 0 ? 'secret.overlap.none' : 'secret.overlap.hours', { n })}
            </SingleSelectOption>
          ))}
        </SingleSelect>
      </Field.Root>
    </Flex>
  );
};

/** Until when both secrets sign, and whether the receiver has taken anything since. */
const Overlap = ({ webhook }: { webhook: ManagedWebhook }) => {
  const text = useText();
  const now = useNow();
  const { previous_secret_until: until, answered_since_rotation: answered } = webhook;
  if (!until || Date.parse(until) <= now) return null;
  return (
    <Flex role="status" direction="column" alignItems="start" gap={1}>
      <Typography>
        {text('secret.previous')} <Time at={until} both />
      </Typography>
      <Typography textColor={answered ? 'success700' : 'neutral800'}>
        {text(answered ? 'secret.answered' : 'secret.unanswered')}
      </Typography>
    </Flex>
  );
};

export const SecretPanel = ({ webhook }: { webhook: ManagedWebhook }) => {
  const text = useText();
  const outcome = useOutcome();
  const { can } = useAccess();
  const [revealed, setRevealed] = useState<WebhookWithSecret>();
  const [reveal, revealing] = useReveal();
  const [hours, setHours] = useState(0);
  const [replaced, setReplaced] = useState<string>();
  const [rotate, { isLoading }] = useRotateSecret();
  const { id } = webhook;
  const secret = revealed?.secret;
  return (
    <Panel
      title={text('secret.title')}
      actions={
        can('webhooks.update') && (
          <ConfirmButton
            icon={<ArrowsCounterClockwise />}
            label={text('secret.rotate')}
            question={<RotateQuestion hours={hours} onChange={setHours} />}
            disabled={isLoading}
            onConfirm={async () => {
              const rotated = outcome(await rotate({ id, hours }), 'secret.rotated');
              setRevealed(undefined);
              // Users who may not reveal it later see it now, to pass it on to the receiver.
              if (!can('webhooks.reveal')) setReplaced(rotated?.secret);
            }}
          />
        )
      }
    >
      <Overlap webhook={webhook} />
      {!can('webhooks.reveal') && (
        <Typography textColor="neutral600">{text('secret.hidden')}</Typography>
      )}
      {can('webhooks.reveal') && secret === undefined && (
        <Flex>
          <Button
            variant="tertiary"
            startIcon={<Eye />}
            loading={revealing.isLoading}
            onClick={async () => setRevealed(outcome(await reveal(id)))}
          >
            {text('secret.reveal')}
          </Button>
        </Flex>
      )}
      {secret === null && (
        <Typography textColor="danger600" role="alert">
          {text('secret.unreadable')}
        </Typography>
      )}
      {typeof secret === 'string' && (
        <Flex gap={2} alignItems="end" wrap="wrap">
          <Field.Root name="secret" hint={text('secret.hint')} flex="1" minWidth="28rem">
            <Field.Label>{text('secret.title')}</Field.Label>
            <TextInput readOnly autoComplete="off" value={secret} />
            <Field.Hint />
          </Field.Root>
          <Flex gap={2} paddingBottom={5}>
            <Button
              variant="tertiary"
              startIcon={<EyeStriked />}
              onClick={() => setRevealed(undefined)}
            >
              {text('secret.hide')}
            </Button>
            <CopyButton wide value={secret} label={text('secret.copy')} />
          </Flex>
        </Flex>
      )}
      {replaced && (
        <ShownOnce
          title={text('secret.title')}
          values={[{ label: text('secret.title'), value: replaced }]}
          onDone={() => setReplaced(undefined)}
        />
      )}
    </Panel>
  );
};
