import { Button, Field, Flex, Grid, Switch, TextInput } from '@strapi/design-system';
import { Check } from '@strapi/icons';
import type { WebhookInput } from '../../../../shared/contracts/webhooks';
import { Panel } from '../../components/panel';
import { EditForm } from '../../components/edit-form';
import type { Saved } from '../../utils/errors';
import { type TextKey, useText } from '../../utils/text';
import { EventPicker } from './event-picker';

export type WebhookValues = Required<WebhookInput>;

/** What the form can tell without the server, which judges the rest (addresses, names of events). */
export const problemsOf = (values: WebhookInput): Partial<Record<keyof WebhookInput, TextKey>> => {
  const problems: Partial<Record<keyof WebhookInput, TextKey>> = {};
  if (values.name.trim() === '') problems.name = 'form.required';
  if (values.url.trim() === '') problems.url = 'form.required';
  else if (!/^https?:\/\/[^\s/]+/i.test(values.url.trim())) problems.url = 'form.url';
  if (values.events.length === 0) problems.events = 'form.events';
  return problems;
};

const trimmed = <V extends Partial<WebhookValues>>(values: V): V => ({
  ...values,
  ...(values.name !== undefined && { name: values.name.trim() }),
  ...(values.url !== undefined && { url: values.url.trim() }),
});

interface WebhookFormProps {
  initial: WebhookValues;
  disabled?: boolean;
  submitLabel: string;
  /** A new webhook is saved as it is; a known one only with changes. */
  isNew?: boolean;
  onSave(values: WebhookValues, changed: Partial<WebhookValues>): Promise<Saved>;
}

export const WebhookForm = ({
  initial,
  disabled,
  submitLabel,
  isNew,
  onSave,
}: WebhookFormProps) => {
  const text = useText();
  return (
    <EditForm<WebhookValues>
      initial={initial}
      problemsOf={(values) =>
        Object.fromEntries(
          Object.entries(problemsOf(values)).map(([field, key]) => [field, text(key)])
        )
      }
      onSave={(values, changed) => onSave(trimmed(values), trimmed(changed))}
    >
      {({ values, errors, saving, modified, set }) => (
        <Flex direction="column" alignItems="stretch" gap={6}>
          <Panel
            title={text('webhook.details')}
            actions={
              !disabled && (
                <Button
                  type="submit"
                  startIcon={<Check />}
                  loading={saving}
                  disabled={!modified && !isNew}
                >
                  {submitLabel}
                </Button>
              )
            }
          >
            <Grid.Root gap={4}>
              <Grid.Item col={6} xs={12} direction="column" alignItems="stretch">
                <Field.Root
                  name="name"
                  required
                  error={errors.name}
                  hint={text('webhook.name.hint')}
                >
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
      )}
    </EditForm>
  );
};
