import { Button, Field, Flex, Grid, Radio, Switch, TextInput } from '@strapi/design-system';
import { Check } from '@strapi/icons';
import {
  CONCURRENCY_LIMITS,
  RATE_LIMITS,
  type WebhookInput,
} from '../../../../shared/contracts/webhooks';
import { Panel } from '../../components/panel';
import { EditForm } from '../../components/edit-form';
import { InHeader } from '../../components/form-page';
import type { Saved } from '../../utils/errors';
import { type TextKey, useText } from '../../utils/text';
import { EventPicker } from './event-picker';
import { FilterEditor } from './filter-editor';
import { parseFilter } from './filter-conditions';
import { type HeaderRow, problemOf, rowsOf, toHeaders } from './header-rows';
import { HeadersEditor } from './headers-editor';

export type WebhookValues = Required<
  Pick<
    WebhookInput,
    | 'name'
    | 'url'
    | 'events'
    | 'active'
    | 'payload'
    | 'filter'
    | 'rate_per_second'
    | 'concurrency'
    | 'ordering'
  >
> & {
  headers: Record<string, string>;
  /** When it was changed last before it was edited here; '' for a new one. */
  basedOn: string;
};

/** As the form edits them: the filter as somebody types it, empty for none; headers as rows. */
type FormValues = Omit<WebhookValues, 'filter' | 'headers'> & {
  filter: string;
  /** The first condition of the filter that is not complete, counted from 1; 0: none. */
  incomplete: number;
  headers: readonly HeaderRow[];
};

const asText = ({ filter, headers, ...rest }: WebhookValues): FormValues => ({
  ...rest,
  filter: filter === null ? '' : JSON.stringify(filter, null, 2),
  incomplete: 0,
  headers: rowsOf(headers),
});

type Entered<V> = {
  [K in Exclude<keyof V, 'incomplete'>]: K extends 'filter' | 'headers' ? WebhookValues[K] : V[K];
};

const asValues = <V extends Partial<FormValues>>({ incomplete: _, ...values }: V): Entered<V> =>
  ({
    ...values,
    ...(values.filter !== undefined && { filter: parseFilter(values.filter) ?? null }),
    ...(values.headers !== undefined && { headers: toHeaders(values.headers) }),
  }) as Entered<V>;

/** Problems found without the server, which checks the rest (addresses, names of events). */
const problemsOf = (values: FormValues): Partial<Record<keyof FormValues, TextKey>> => {
  const problems: Partial<Record<keyof FormValues, TextKey>> = {};
  if (values.name.trim() === '') problems.name = 'form.required';
  if (values.url.trim() === '') problems.url = 'form.required';
  else if (!/^https?:\/\/[^\s/]+/i.test(values.url.trim())) problems.url = 'form.url';
  if (values.events.length === 0) problems.events = 'form.events';
  if (parseFilter(values.filter) === undefined) problems.filter = 'filter.notJson';
  return problems;
};

const trimmed = <V extends Partial<FormValues>>(values: V): V => ({
  ...values,
  ...(values.name !== undefined && { name: values.name.trim() }),
  ...(values.url !== undefined && { url: values.url.trim() }),
});

interface WebhookFormProps {
  initial: WebhookValues;
  disabled?: boolean;
  submitLabel: string;
  /** The webhook on whose recent events a filter can be tried. */
  webhookId?: number;
  /** A new webhook is saved as it is; a known one only with changes. */
  isNew?: boolean;
  onSave(
    values: WebhookValues,
    changed: Partial<WebhookValues>,
    before: WebhookValues
  ): Promise<Saved>;
}

export const WebhookForm = ({
  initial,
  disabled,
  submitLabel,
  isNew,
  webhookId,
  onSave,
}: WebhookFormProps) => {
  const text = useText();
  return (
    <EditForm<FormValues>
      initial={asText(initial)}
      problemsOf={(values) => {
        const problems = Object.entries(problemsOf(values)).map(([field, key]) => [
          field,
          text(key),
        ]);
        const rows = problemOf(values.headers);
        if (values.incomplete > 0) {
          problems.push(['filter', text('filter.incomplete', { n: values.incomplete })]);
        }
        if (rows) problems.push(['headers', text(rows.key, rows.values)]);
        return Object.fromEntries(problems) as Record<string, string>;
      }}
      onSave={(values, changed, before) =>
        onSave(asValues(trimmed(values)), asValues(trimmed(changed)), asValues(before))
      }
    >
      {({ values, errors, saving, modified, submit, set }) => (
        <Flex direction="column" alignItems="stretch" gap={6}>
          {!disabled && (
            <InHeader>
              <Button
                startIcon={<Check />}
                loading={saving}
                disabled={!modified && !isNew}
                onClick={submit}
              >
                {submitLabel}
              </Button>
            </InHeader>
          )}
          <Panel title={text('webhook.details')}>
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
          <Panel title={text('payload.title')}>
            <Radio.Group
              value={values.payload}
              disabled={disabled}
              aria-label={text('payload.title')}
              onValueChange={(payload) => set('payload', payload === 'thin' ? 'thin' : 'full')}
            >
              <Radio.Item value="full">{text('payload.full')}</Radio.Item>
              <Radio.Item value="thin">{text('payload.thin')}</Radio.Item>
            </Radio.Group>
          </Panel>
          <Panel title={text('manners.title')}>
            <Grid.Root gap={4}>
              {(
                [
                  ['rate_per_second', 'manners.rate', RATE_LIMITS],
                  ['concurrency', 'manners.concurrency', CONCURRENCY_LIMITS],
                ] as const
              ).map(([field, label, { least, most }]) => (
                <Grid.Item key={field} col={6} xs={12} direction="column" alignItems="stretch">
                  <Field.Root name={field} error={errors[field]} hint={text(`${label}.hint`)}>
                    <Field.Label>{text(label)}</Field.Label>
                    <TextInput
                      type="number"
                      min={least}
                      max={most}
                      step={field === 'concurrency' ? 1 : 'any'}
                      value={values[field] ?? ''}
                      disabled={disabled}
                      onChange={(event) => {
                        const typed = event.currentTarget.value;
                        set(field, typed === '' ? null : Number(typed));
                      }}
                    />
                    <Field.Hint />
                    <Field.Error />
                  </Field.Root>
                </Grid.Item>
              ))}
            </Grid.Root>
            <Radio.Group
              value={values.ordering}
              disabled={disabled}
              aria-label={text('manners.ordering')}
              onValueChange={(ordering) =>
                set('ordering', ordering === 'by_record' ? 'by_record' : 'none')
              }
            >
              <Radio.Item value="none">{text('manners.ordering.none')}</Radio.Item>
              <Radio.Item value="by_record">{text('manners.ordering.byRecord')}</Radio.Item>
            </Radio.Group>
          </Panel>
          <Panel title={text('filter.title')}>
            <FilterEditor
              value={values.filter}
              incomplete={values.incomplete}
              error={errors.filter}
              disabled={disabled}
              events={values.events}
              webhookId={webhookId}
              onChange={(filter, incomplete) => {
                set('incomplete', incomplete);
                set('filter', filter);
              }}
            />
          </Panel>
          <Panel title={text('headers.title')}>
            <HeadersEditor
              rows={values.headers}
              webhookId={webhookId}
              error={errors.headers}
              disabled={disabled}
              onChange={(headers) => set('headers', headers)}
            />
          </Panel>
        </Flex>
      )}
    </EditForm>
  );
};
