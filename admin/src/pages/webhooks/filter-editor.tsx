import {
  Button,
  Combobox,
  ComboboxOption,
  Field,
  Flex,
  IconButton,
  SingleSelect,
  SingleSelectOption,
  Tabs,
  Textarea,
  TextInput,
  Typography,
} from '@strapi/design-system';
import { Play, Plus, Trash } from '@strapi/icons';
import { useState } from 'react';
import { styled } from 'styled-components';
import type { FilterPreview } from '../../../../shared/contracts/webhooks';
import { CodeBlock } from '../../components/code-block';
import { Pill } from '../../components/pill';
import { useCatalogue, usePreviewFilter } from '../../services/webhooks';
import { useOutcome } from '../../utils/errors';
import { useRefusals } from '../../utils/refusals';
import { useText } from '../../utils/text';
import {
  type Condition,
  completeOf,
  conditionsOf,
  firstIncomplete,
  type Operator,
  OPERATORS,
  parseFilter,
  pathsOf,
  schemaOf,
} from './filter-conditions';

const Code = styled(Textarea)`
  textarea {
    font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
  }
`;

interface RowProps {
  condition: Condition;
  paths: readonly string[];
  disabled?: boolean;
  onChange(condition: Condition): void;
  onRemove(): void;
}

const ConditionRow = ({ condition, paths, disabled, onChange, onRemove }: RowProps) => {
  const text = useText();
  const { path, operator, value } = condition;
  return (
    <Flex gap={2} alignItems="end" wrap="wrap">
      <Field.Root name="path" flex="2" minWidth="20rem">
        <Field.Label>{text('filter.path')}</Field.Label>
        <Combobox
          value={path}
          disabled={disabled}
          creatable
          createMessage={(typed) => typed}
          onCreateOption={(typed) => onChange({ ...condition, path: String(typed).trim() })}
          onChange={(chosen) => onChange({ ...condition, path: String(chosen ?? '') })}
        >
          {[...new Set([...paths, ...(path === '' ? [] : [path])])].map((one) => (
            <ComboboxOption key={one} value={one}>
              {one}
            </ComboboxOption>
          ))}
        </Combobox>
      </Field.Root>
      <Field.Root name="operator" flex="1" minWidth="16rem">
        <Field.Label>{text('filter.operator')}</Field.Label>
        <SingleSelect
          value={operator}
          disabled={disabled}
          onChange={(chosen) => onChange({ ...condition, operator: chosen as Operator })}
        >
          {OPERATORS.map((one) => (
            <SingleSelectOption key={one} value={one}>
              {text(`filter.operator.${one}`)}
            </SingleSelectOption>
          ))}
        </SingleSelect>
      </Field.Root>
      {operator !== 'exists' && (
        <Field.Root name="value" flex="1" minWidth="16rem">
          <Field.Label>{text('filter.value')}</Field.Label>
          <TextInput
            value={value}
            disabled={disabled}
            onChange={(event) => onChange({ ...condition, value: event.currentTarget.value })}
          />
        </Field.Root>
      )}
      {!disabled && (
        <IconButton label={text('filter.remove')} onClick={onRemove}>
          <Trash />
        </IconButton>
      )}
    </Flex>
  );
};

const textOf = (conditions: readonly Condition[]): string => {
  const schema = schemaOf(completeOf(conditions));
  return schema === null ? '' : JSON.stringify(schema, null, 2);
};

interface BuilderProps {
  value: string;
  incomplete: number;
  edited: readonly Condition[];
  paths: readonly string[];
  disabled?: boolean;
  onChange(conditions: readonly Condition[]): void;
}

/** Conditions, row by row. Rows that are not complete yet are in `edited` alone. */
const Builder = ({ value, incomplete, edited, paths, disabled, onChange }: BuilderProps) => {
  const text = useText();
  const said = conditionsOf(parseFilter(value) ?? null);
  if (said === null) return <Typography>{text('filter.tooMuch')}</Typography>;
  const isEdited = textOf(edited) === value && firstIncomplete(edited) === incomplete;
  const rows = isEdited ? edited : said;
  return (
    <Flex direction="column" alignItems="stretch" gap={3}>
      {rows.length === 0 && <Typography textColor="neutral600">{text('filter.none')}</Typography>}
      {rows.map((condition, at) => (
        <ConditionRow
          // Conditions have no id, and their order does not matter.
          key={at}
          condition={condition}
          paths={paths}
          disabled={disabled}
          onChange={(next) => onChange(rows.with(at, next))}
          onRemove={() => onChange(rows.toSpliced(at, 1))}
        />
      ))}
      {!disabled && (
        <Flex>
          <Button
            variant="secondary"
            startIcon={<Plus />}
            onClick={() => onChange([...rows, { path: '', operator: 'is', value: '' }])}
          >
            {text('filter.add')}
          </Button>
        </Flex>
      )}
    </Flex>
  );
};

const Preview = ({ preview }: { preview: FilterPreview }) => {
  const text = useText();
  return (
    <Flex direction="column" alignItems="stretch" gap={3} role="status">
      <Typography fontWeight="bold">
        {text('filter.matched', { n: preview.matched, of: preview.of })}
      </Typography>
      {preview.samples.map(({ event, delivery_id: delivery, matched, data }, at) => (
        <details key={delivery ?? `${event}-${at}`}>
          <summary>
            <Flex tag="span" display="inline-flex" gap={2} wrap="wrap" maxWidth="calc(100% - 2rem)">
              <Pill variant={matched ? 'success' : 'neutral'}>
                {text(matched ? 'filter.sent' : 'filter.leftOut')}
              </Pill>
              <Typography>{event}</Typography>
              <Typography variant="pi" textColor="neutral600">
                {delivery ?? text('filter.example')}
              </Typography>
            </Flex>
          </summary>
          <CodeBlock
            title={text('filter.data')}
            code={JSON.stringify(data, null, 2)}
            copyLabel={text('request.body.copy')}
          />
        </details>
      ))}
    </Flex>
  );
};

interface FilterEditorProps {
  /** The JSON Schema as text; empty for none. */
  value: string;
  /** The first condition that is not complete, counted from 1; 0: none. */
  incomplete: number;
  error?: string;
  disabled?: boolean;
  /** The chosen events, whose examples say which values there are. */
  events: readonly string[];
  webhookId?: number;
  onChange(text: string, incomplete: number): void;
}

/** Which of the chosen events are sent: by conditions, or by a JSON Schema of their data. */
export const FilterEditor = ({
  value,
  incomplete,
  error,
  disabled,
  events,
  webhookId,
  onChange,
}: FilterEditorProps) => {
  const text = useText();
  const outcome = useOutcome();
  const { byField } = useRefusals();
  const catalogue = useCatalogue();
  const [ask, { isLoading }] = usePreviewFilter();
  const [edited, setEdited] = useState<readonly Condition[]>([]);
  const [preview, setPreview] = useState<{ of: string; result: FilterPreview }>();
  const [refused, setRefused] = useState<{ of: string; message: string }>();
  const [advanced, setAdvanced] = useState(() => conditionsOf(parseFilter(value) ?? null) === null);
  const paths = [
    ...new Set(
      (catalogue.data ?? [])
        .filter(({ event }) => events.includes('*') || events.includes(event))
        .flatMap(({ example }) => pathsOf(example))
    ),
  ].sort();
  const filter = parseFilter(value);
  const onTry = async (): Promise<void> => {
    if (!filter || webhookId === undefined) return;
    const done = await ask({ id: webhookId, filter });
    const message = 'error' in done ? byField(done.error).filter : undefined;
    setRefused(message === undefined ? undefined : { of: value, message });
    const result = message === undefined ? outcome(done) : undefined;
    setPreview(result && { of: value, result });
  };
  const problem = error ?? (refused?.of === value ? refused.message : undefined);
  return (
    <Field.Root name="filter" error={problem}>
      <Flex direction="column" alignItems="stretch" gap={4} width="100%">
        <Typography textColor="neutral600">{text('filter.hint')}</Typography>
        <Tabs.Root
          variant="simple"
          value={advanced ? 'schema' : 'conditions'}
          onValueChange={(tab) => setAdvanced(tab === 'schema')}
        >
          <Tabs.List aria-label={text('filter.title')}>
            <Tabs.Trigger value="conditions">{text('filter.conditions')}</Tabs.Trigger>
            <Tabs.Trigger value="schema">{text('filter.schema')}</Tabs.Trigger>
          </Tabs.List>
          <Tabs.Content value="conditions">
            <Flex direction="column" alignItems="stretch" paddingTop={4}>
              <Builder
                value={value}
                incomplete={incomplete}
                edited={edited}
                paths={paths}
                disabled={disabled}
                onChange={(conditions) => {
                  setEdited(conditions);
                  onChange(textOf(conditions), firstIncomplete(conditions));
                }}
              />
            </Flex>
          </Tabs.Content>
          <Tabs.Content value="schema">
            <Flex direction="column" alignItems="stretch" paddingTop={4}>
              <Code
                aria-label={text('filter.schema')}
                value={value}
                disabled={disabled}
                rows={10}
                spellCheck={false}
                placeholder={text('filter.schema.placeholder')}
                onChange={(event) => onChange(event.currentTarget.value, 0)}
              />
            </Flex>
          </Tabs.Content>
        </Tabs.Root>
        <Field.Error />
        {webhookId !== undefined && !disabled && (
          <Flex>
            <Button
              variant="tertiary"
              startIcon={<Play />}
              loading={isLoading}
              disabled={!filter || incomplete > 0}
              onClick={() => void onTry()}
            >
              {text('filter.try')}
            </Button>
          </Flex>
        )}
        {preview?.of === value && <Preview preview={preview.result} />}
      </Flex>
    </Field.Root>
  );
};
