import { Box, Button, Field, Flex, Grid, Switch, TextInput } from '@strapi/design-system';
import { Check } from '@strapi/icons';
import { type FormEvent, useState } from 'react';
import type { WebhookInput } from '../../../../shared/contracts/webhooks';
import { Panel } from '../../components/definition-list';
import { type TextKey, useText } from '../../utils/text';
import { EventPicker } from './event-picker';

type Errors = Partial<Record<keyof WebhookInput, string>>;

/** What the form can tell without the server, which judges the rest (addresses, names of events). */
export const problemsOf = (values: WebhookInput): Partial<Record<keyof WebhookInput, TextKey>> => {
  const problems: Partial<Record<keyof WebhookInput, TextKey>> = {};
  if (values.name.trim() === '') problems.name = 'form.required';
  if (values.url.trim() === '') problems.url = 'form.required';
  else if (!/^https?:\/\/[^\s/]+/i.test(values.url.trim())) problems.url = 'form.url';
  if (values.events.length === 0) problems.events = 'form.events';
  return problems;
};

interface WebhookFormProps {
  initial: WebhookInput;
  disabled?: boolean;
  submitLabel: string;
  /** Resolves with what the server objects to, by field; empty when it was saved. */
  onSave(values: WebhookInput): Promise<Record<string, string>>;
}

export const WebhookForm = ({ initial, disabled, submitLabel, onSave }: WebhookFormProps) => {
  const text = useText();
  const [values, setValues] = useState(initial);
  const [errors, setErrors] = useState<Errors>({});
  const [saving, setSaving] = useState(false);
  const dirty = JSON.stringify(values) !== JSON.stringify(initial);

  const set = <K extends keyof WebhookInput>(field: K, value: WebhookInput[K]): void => {
    setValues((now) => ({ ...now, [field]: value }));
    setErrors((now) => ({ ...now, [field]: undefined }));
  };

  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    const problems = Object.entries(problemsOf(values)).map(([field, key]) => [field, text(key)]);
    if (problems.length > 0) {
      setErrors(Object.fromEntries(problems) as Errors);
      return;
    }
    setSaving(true);
    setErrors(
      (await onSave({ ...values, name: values.name.trim(), url: values.url.trim() })) as Errors
    );
    setSaving(false);
  };

  return (
    <Box tag="form" noValidate onSubmit={(event: FormEvent) => void submit(event)} width="100%">
      <Flex direction="column" alignItems="stretch" gap={6}>
        <Panel
          title={text('webhook.details')}
          actions={
            !disabled && (
              <Button
                type="submit"
                startIcon={<Check />}
                loading={saving}
                disabled={!dirty && initial.name !== ''}
              >
                {submitLabel}
              </Button>
            )
          }
        >
          <Grid.Root gap={4}>
            <Grid.Item col={6} xs={12} direction="column" alignItems="stretch">
              <Field.Root name="name" required error={errors.name} hint={text('webhook.name.hint')}>
                <Field.Label>{text('webhook.name')}</Field.Label>
                <TextInput
                  value={values.name}
                  disabled={disabled}
                  maxLength={255}
                  onChange={(event) => set('name', event.currentTarget.value)}
                />
                <Field.Hint />
                <Field.Error />
              </Field.Root>
            </Grid.Item>
            <Grid.Item col={6} xs={12} direction="column" alignItems="stretch">
              <Field.Root name="url" required error={errors.url} hint={text('webhook.url.hint')}>
                <Field.Label>{text('webhook.url')}</Field.Label>
                <TextInput
                  type="url"
                  value={values.url}
                  disabled={disabled}
                  placeholder="https://"
                  onChange={(event) => set('url', event.currentTarget.value)}
                />
                <Field.Hint />
                <Field.Error />
              </Field.Root>
            </Grid.Item>
            <Grid.Item col={12} direction="column" alignItems="start">
              <Field.Root name="active">
                <Field.Label>{text('webhook.active')}</Field.Label>
                <Switch
                  aria-label={text('webhook.active')}
                  checked={values.active}
                  disabled={disabled}
                  onCheckedChange={(checked) => set('active', checked)}
                  onLabel={text('webhook.on')}
                  offLabel={text('webhook.off')}
                  visibleLabels
                />
              </Field.Root>
            </Grid.Item>
          </Grid.Root>
        </Panel>
        <Panel title={text('webhook.events')}>
          <EventPicker
            chosen={values.events}
            error={errors.events}
            disabled={disabled}
            onChange={(events) => set('events', events)}
          />
        </Panel>
      </Flex>
    </Box>
  );
};
