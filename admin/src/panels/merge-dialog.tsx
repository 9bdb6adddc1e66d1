import {
  Box,
  Button,
  Flex,
  Modal,
  Radio,
  Typography,
  type TypographyProps,
} from '@strapi/design-system';
import { unstable_useDocumentLayout as useDocumentLayout } from '@strapi/strapi/admin';
import { useState } from 'react';
import { useIntl } from 'react-intl';
import { isMergedValue, mergedValue, type MergedShape } from '../../../shared/contact-merge';
import { type Column, DataTable } from '../components/data-table';
import { Loaded } from '../components/page-states';
import { type Entry, useContact, useMerge, useRelated } from '../services/contacts';
import { useOutcome } from '../utils/errors';
import { useText } from '../utils/text';

type Ids = readonly [string, string];

interface Field {
  name: string;
  label: string;
  shape: MergedShape & { relation?: string };
  mainField: string;
}

interface MergeDialogProps {
  model: string;
  ids: Ids;
  onClose(): void;
  onMerged(): void;
}

const nameOf = ({ first_name: first, last_name: last, email, documentId }: Entry): string =>
  [[first, last].filter(Boolean).join(' '), email].filter(Boolean).join(', ') || String(documentId);

/** A value as a cell shows it. */
const useShown = () => {
  const { formatDate } = useIntl();
  return (type: string, value: unknown): string => {
    if (value === null || value === undefined || value === '') return '–';
    if (type === 'datetime') {
      return formatDate(String(value), { dateStyle: 'medium', timeStyle: 'short' });
    }
    if (type === 'date') return formatDate(`${String(value)}T00:00`, { dateStyle: 'medium' });
    return typeof value === 'object' ? JSON.stringify(value) : String(value);
  };
};

/** The fields of the form in its order, as the content manager labels them. */
const useFields = (model: string): Field[] =>
  useDocumentLayout(model)
    .edit.layout.flat(2)
    .map(({ name, label, attribute, mainField }) => ({
      name,
      label,
      shape: attribute as Field['shape'],
      mainField: mainField?.name ?? 'documentId',
    }));

interface RelatedProps {
  model: string;
  ids: readonly string[];
  field: Field;
}

/** The records that a field relates one contact, or both, to. */
const Related = ({ model, ids, field: { name, mainField } }: RelatedProps) => {
  const [one = '', other = one] = ids;
  const first = useRelated({ model, id: one, field: name }).data ?? [];
  const second = useRelated({ model, id: other, field: name }).data ?? [];
  const names = [...first, ...second].map((entry) => String(entry[mainField] ?? entry.documentId));
  return <>{[...new Set(names)].join(', ') || '–'}</>;
};

const countOf = (entry: Entry, name: string): number =>
  Number((entry[name] as { count?: number } | null)?.count ?? 0);

interface ComparisonProps {
  model: string;
  kept: Entry;
  other: Entry;
}

const isToOne = ({ shape }: Field): boolean => /ToOne$/.test(shape.relation ?? '');

/** A value of the contact that is kept. The status comes with the address. */
const resultingValue = ({ name, shape }: Field, kept: Entry, other: Entry): unknown => {
  if (name === 'contact_status' && !kept.email && other.email) return other[name];
  return isMergedValue(name, shape) ? mergedValue(shape, kept[name], other[name]) : kept[name];
};

const BREAKING = { overflowWrap: 'anywhere' } as const;

/** All of a value, however long its words are: here the user decides what is deleted. */
const Value = (props: TypographyProps<'div'>) => (
  <Typography
    {...props}
    tag="div"
    style={{ ...BREAKING, whiteSpace: 'normal', minWidth: '8rem' }}
  />
);

/** Each field of both contacts, and as it will be. */
const Comparison = ({ model, kept, other }: ComparisonProps) => {
  const text = useText();
  const shown = useShown();
  const fields = useFields(model);
  const related = (field: Field, entries: readonly Entry[]) => (
    <Related
      model={model}
      field={field}
      ids={entries.map(({ documentId }) => String(documentId))}
    />
  );
  const cellOf = (field: Field, entry: Entry) =>
    field.shape.type === 'relation'
      ? related(field, [entry])
      : shown(field.shape.type, entry[field.name]);
  const resultOf = (field: Field) => {
    const { name, shape } = field;
    if (shape.type === 'relation') {
      if (!isToOne(field)) return related(field, [kept, other]);
      return related(field, [countOf(kept, name) > 0 ? kept : other]);
    }
    if (name === 'lifetime_value') {
      return shown(shape.type, Number(kept[name] ?? 0) + Number(other[name] ?? 0));
    }
    return shown(shape.type, resultingValue(field, kept, other));
  };
  const isShown = ({ name, shape }: Field): boolean =>
    [kept, other].some((entry) =>
      shape.type === 'relation' ? countOf(entry, name) > 0 : shown(shape.type, entry[name]) !== '–'
    );
  const columns: Column<Field>[] = [
    { id: 'field', label: text('merge.field'), cell: ({ label }) => label },
    {
      id: 'kept',
      label: text('merge.kept'),
      cell: (field) => <Value>{cellOf(field, kept)}</Value>,
    },
    {
      id: 'other',
      label: text('merge.other'),
      cell: (field) => <Value>{cellOf(field, other)}</Value>,
    },
    {
      id: 'result',
      label: text('merge.result'),
      cell: (field) => <Value fontWeight="bold">{resultOf(field)}</Value>,
    },
  ];
  return (
    <DataTable
      label={text('merge.fields')}
      columns={columns}
      rows={fields.filter(isShown)}
      rowId={({ name }) => name}
      empty={{ text: text('merge.empty') }}
    />
  );
};

interface ChoiceProps {
  entries: readonly Entry[];
  kept: string;
  onChoose(id: string): void;
}

/** Which contact is kept. */
const Choice = ({ entries, kept, onChoose }: ChoiceProps) => {
  const text = useText();
  return (
    <Radio.Group aria-label={text('merge.keep')} value={kept} onValueChange={onChoose}>
      <Flex direction="column" alignItems="start" gap={2}>
        <Typography fontWeight="bold">{text('merge.keep')}</Typography>
        {entries.map((entry) => (
          <Radio.Item key={String(entry.documentId)} value={String(entry.documentId)}>
            {nameOf(entry)}
          </Radio.Item>
        ))}
      </Flex>
    </Radio.Group>
  );
};

const FRESH = { refetchOnMountOrArgChange: true };

/** Lets the user choose which of two contacts is kept, shows the result, and merges them. */
const MergeDialog = ({ model, ids: [one, other], onClose, onMerged }: MergeDialogProps) => {
  const text = useText();
  const outcome = useOutcome();
  const first = useContact({ model, id: one }, FRESH);
  const second = useContact({ model, id: other }, FRESH);
  const [merge, { isLoading }] = useMerge();
  const [keep, setKeep] = useState<string>(one);
  const entries = [first.data, second.data].filter((entry) => entry !== undefined) as Entry[];
  const kept = entries.find(({ documentId }) => documentId === keep);
  const removed = entries.find(({ documentId }) => documentId !== keep);
  const run = async (): Promise<void> => {
    if (!kept || !removed) return;
    const seen = { keep: String(kept.updatedAt), remove: String(removed.updatedAt) };
    const done = await merge({ model, keep, remove: String(removed.documentId), seen });
    if (outcome(done, 'merge.done')) onMerged();
    else void Promise.all([first.refetch(), second.refetch()]);
  };
  return (
    <>
      <Modal.Body>
        <Loaded query={second.error ? second : first}>
          {() =>
            kept && removed ? (
              <Flex direction="column" alignItems="stretch" gap={4}>
                <Box style={BREAKING}>
                  <Choice entries={entries} kept={keep} onChoose={setKeep} />
                </Box>
                <Typography style={BREAKING}>
                  {text('merge.explained', { name: nameOf(removed) })}
                </Typography>
                <Comparison model={model} kept={kept} other={removed} />
              </Flex>
            ) : null
          }
        </Loaded>
      </Modal.Body>
      <Modal.Footer>
        <Button variant="tertiary" onClick={onClose}>
          {text('action.cancel')}
        </Button>
        <Button
          variant="danger-light"
          loading={isLoading}
          disabled={!kept || !removed || Boolean(first.error ?? second.error)}
          onClick={() => void run()}
        >
          {text('merge.confirm')}
        </Button>
      </Modal.Footer>
    </>
  );
};

export default MergeDialog;
