import { Button, Flex, Typography } from '@strapi/design-system';
import { Layouts, Page, SearchInput, useQueryParams } from '@strapi/strapi/admin';
import { useState } from 'react';
import {
  MAPPING_KINDS,
  type MappingKind,
  type Resolved,
  type UnknownValue,
} from '../../../../shared/contracts/pos-mapping';
import { type Column, DataTable } from '../../components/data-table';
import { Filter } from '../../components/filter';
import { Loaded } from '../../components/page-states';
import { requestedPage, Pager } from '../../components/pager';
import { Time } from '../../components/time';
import { useMappingInbox, useUndoMapping } from '../../services/mapping';
import { useOutcome } from '../../utils/errors';
import { usePolling } from '../../utils/polling';
import { useText } from '../../utils/text';
import { ResolveDialog } from './resolve-dialog';
import { ResolvedPanel } from './resolved-panel';
import { waitingRecords } from './waiting-records';

const REFRESH_MS = 5000;

interface InboxQuery {
  _q?: string;
  kind?: string;
  page?: string;
  pageSize?: string;
}

const useColumns = (onResolve: (unknown: UnknownValue) => void): Column<UnknownValue>[] => {
  const text = useText();
  return [
    {
      id: 'value',
      label: text('mapping.value'),
      cell: ({ value, connection }) => (
        <>
          <Typography fontWeight="bold">{value}</Typography>
          {connection && (
            <Typography variant="pi" textColor="neutral600">{` ${connection.name}`}</Typography>
          )}
        </>
      ),
    },
    { id: 'kind', label: text('mapping.kind'), cell: ({ kind }) => text(`mapping.kind.${kind}`) },
    {
      id: 'waiting',
      label: text('mapping.waiting'),
      cell: (row) => waitingRecords(row, text),
    },
    {
      id: 'first',
      label: text('mapping.first'),
      cell: ({ first_at: at }) => <Time at={at} />,
    },
    { id: 'last', label: text('mapping.last'), cell: ({ last_at: at }) => <Time at={at} /> },
    {
      id: 'resolve',
      label: text('table.actions'),
      hiddenLabel: true,
      interactive: true,
      cell: (row) => (
        <Button
          size="S"
          variant="secondary"
          aria-label={text('mapping.resolve.of', { value: row.value })}
          onClick={() => onResolve(row)}
        >
          {text('mapping.resolve')}
        </Button>
      ),
    },
  ];
};

/** The last mapping, with a button to undo it. */
const JustResolved = ({ value, id, records }: { value: string; id: number; records: number }) => {
  const text = useText();
  const outcome = useOutcome();
  const [undo, { isLoading, isSuccess }] = useUndoMapping();
  return (
    <Flex
      role="status"
      gap={4}
      wrap="wrap"
      padding={4}
      hasRadius
      background="success100"
      borderColor="success200"
    >
      <Typography textColor="neutral800">
        {text(isSuccess ? 'mapping.done.undone' : 'mapping.done', { value, records })}
      </Typography>
      {!isSuccess && (
        <Button
          size="S"
          variant="tertiary"
          loading={isLoading}
          onClick={() => void undo(id).then((done) => outcome(done, 'mapping.undone'))}
        >
          {text('mapping.undo')}
        </Button>
      )}
    </Flex>
  );
};

const MappingPage = () => {
  const text = useText();
  const [{ query }, setQuery] = useQueryParams<InboxQuery>();
  const [chosen, setChosen] = useState<UnknownValue | null>(null);
  const [done, setDone] = useState<(Resolved & { value: string }) | null>(null);
  const inbox = useMappingInbox(
    {
      kind: (query.kind || undefined) as MappingKind | undefined,
      search: query._q || undefined,
      ...requestedPage(query, 50),
    },
    { pollingInterval: usePolling(REFRESH_MS) }
  );
  const columns = useColumns(setChosen);
  return (
    <Page.Main>
      <Page.Title>{text('nav.unmapped')}</Page.Title>
      <Layouts.Header title={text('nav.unmapped')} subtitle={text('mapping.subtitle')} />
      <Layouts.Action
        startActions={
          <Flex gap={2} wrap="wrap">
            <SearchInput label={text('mapping.search')} trackedEvent={null} />
            <Filter
              label="mapping.filter.kind"
              value={query.kind}
              options={MAPPING_KINDS.map((kind) => [kind, text(`mapping.kind.${kind}`)])}
              onChange={(kind) =>
                kind === undefined
                  ? setQuery({ kind: '' }, 'remove')
                  : setQuery({ kind, page: '1' })
              }
            />
          </Flex>
        }
      />
      <Layouts.Content>
        <Flex direction="column" alignItems="stretch" gap={6}>
          {done && done.id !== null && (
            <JustResolved key={done.id} value={done.value} id={done.id} records={done.records} />
          )}
          <Loaded query={inbox}>
            {({ data, meta }) => (
              <div>
                <DataTable
                  label={text('nav.unmapped')}
                  columns={columns}
                  rows={data}
                  rowId={({ kind, value, connection }) => `${kind}-${connection?.id}-${value}`}
                  empty={{
                    text: text(query._q || query.kind ? 'table.noMatch' : 'mapping.empty'),
                  }}
                />
                {meta.pagination.total > 0 && <Pager pagination={meta.pagination} />}
              </div>
            )}
          </Loaded>
          <ResolvedPanel />
        </Flex>
      </Layouts.Content>
      {chosen && (
        <ResolveDialog
          unknown={chosen}
          onClose={() => setChosen(null)}
          onResolved={(resolved) => {
            setDone({ ...resolved, value: chosen.value });
            setChosen(null);
          }}
        />
      )}
    </Page.Main>
  );
};

export default MappingPage;
