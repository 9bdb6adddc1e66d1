import { ArrowClockwise } from '@strapi/icons';
import { Typography } from '@strapi/design-system';
import { useState } from 'react';
import type { Mapping } from '../../../../shared/contracts/pos-mapping';
import { ConfirmButton } from '../../components/confirm-button';
import { type Column, DataTable } from '../../components/data-table';
import { Loaded } from '../../components/page-states';
import { Panel } from '../../components/panel';
import { Steps } from '../../components/steps';
import { Time } from '../../components/time';
import { useMappings, useUndoMapping } from '../../services/mapping';
import { useOutcome } from '../../utils/errors';
import { type Translate, useText } from '../../utils/text';

const PER_PAGE = 20;

const meaningOf = ({ to }: Mapping, text: Translate): string => {
  if ('location' in to) return text('mapping.to.location', { name: to.location.name });
  if ('ignore' in to) return text('mapping.to.ignore');
  const item = [to.item.sku, to.item.name].filter(Boolean).join(' – ');
  return text(to.created ? 'mapping.to.created' : 'mapping.to.item', { item });
};

const Undo = ({ mapping }: { mapping: Mapping }) => {
  const text = useText();
  const outcome = useOutcome();
  const [undo, { isLoading }] = useUndoMapping();
  return (
    <ConfirmButton
      compact
      label={text('mapping.undo.of', { value: mapping.value })}
      confirmLabel={text('mapping.undo')}
      question={text('mapping.undo.question', { value: mapping.value })}
      icon={<ArrowClockwise />}
      disabled={isLoading}
      onConfirm={async () => outcome(await undo(mapping.id), 'mapping.undone')}
    />
  );
};

/** Active mappings, newest first, each with a button to undo it. */
export const ResolvedPanel = () => {
  const text = useText();
  const [page, setPage] = useState(1);
  const mappings = useMappings({ page, perPage: PER_PAGE });
  const columns: Column<Mapping>[] = [
    {
      id: 'value',
      label: text('mapping.value'),
      cell: ({ kind, value, connection }) => (
        <>
          <Typography fontWeight="bold">{value}</Typography>{' '}
          <Typography variant="pi" textColor="neutral600">
            {[text(`mapping.kind.${kind}`), connection?.name].filter(Boolean).join(', ')}
          </Typography>
        </>
      ),
    },
    { id: 'to', label: text('mapping.meaning'), cell: (mapping) => meaningOf(mapping, text) },
    { id: 'by', label: text('movement.by'), cell: ({ made_by: by }) => by ?? '–' },
    { id: 'at', label: text('movement.at'), cell: ({ created_at: at }) => <Time at={at} /> },
    {
      id: 'undo',
      label: text('table.actions'),
      hiddenLabel: true,
      cell: (mapping) => <Undo mapping={mapping} />,
    },
  ];
  return (
    <Panel title={text('mapping.resolved')}>
      <Loaded query={mappings}>
        {({ data, meta }) => (
          <>
            <DataTable
              label={text('mapping.resolved')}
              columns={columns}
              rows={data}
              rowId={({ id }) => id}
              empty={{ text: text('mapping.resolved.none') }}
            />
            <Steps page={page} pageCount={meta.pagination.page_count} onChange={setPage} />
          </>
        )}
      </Loaded>
    </Panel>
  );
};
