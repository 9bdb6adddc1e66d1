import { Button, Field, Flex, TextInput, Typography } from '@strapi/design-system';
import { ArrowsCounterClockwise, Eye, EyeStriked } from '@strapi/icons';
import { useState } from 'react';
import type { WebhookWithSecret } from '../../../../shared/contracts/webhooks';
import { ConfirmButton } from '../../components/confirm-button';
import { CopyButton } from '../../components/copy-button';
import { Panel } from '../../components/panel';
import { ShownOnce } from '../../components/shown-once';
import { useAccess } from '../../permissions';
import { useRotateSecret } from '../../services/webhooks';
import { useOutcome } from '../../utils/errors';
import { useText } from '../../utils/text';

export const SecretPanel = ({ webhook }: { webhook: WebhookWithSecret }) => {
  const text = useText();
  const outcome = useOutcome();
  const { can } = useAccess();
  const [shown, setShown] = useState(false);
  const [replaced, setReplaced] = useState<string>();
  const [rotate, { isLoading }] = useRotateSecret();
  const { id, secret } = webhook;
  return (
    <Panel
      title={text('secret.title')}
      actions={
        can('webhooks.update') && (
          <ConfirmButton
            icon={<ArrowsCounterClockwise />}
            label={text('secret.rotate')}
            question={text('secret.rotate.question')}
            disabled={isLoading}
            onConfirm={async () => {
              const rotated = outcome(await rotate(id), 'secret.rotated');
              // Whoever may not look it up again gets it now, to hand it to the receiver.
              if (!can('webhooks.reveal')) setReplaced(rotated?.secret);
            }}
          />
        )
      }
    >
      {secret === undefined && (
        <Typography textColor="neutral600">{text('secret.hidden')}</Typography>
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
            <TextInput
              readOnly
              autoComplete="off"
              type={shown ? 'text' : 'password'}
              value={secret}
            />
            <Field.Hint />
          </Field.Root>
          <Flex gap={2} paddingBottom={5}>
            <Button
              variant="tertiary"
              startIcon={shown ? <EyeStriked /> : <Eye />}
              aria-pressed={shown}
              onClick={() => setShown(!shown)}
            >
              {text(shown ? 'secret.hide' : 'secret.reveal')}
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
