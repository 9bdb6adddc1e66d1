import { Flex, Typography } from '@strapi/design-system';
import { SearchInput, useQueryParams } from '@strapi/strapi/admin';
import { useNavigate } from 'react-router-dom';
import {
  type PosEventKind,
  type PosEventSummary,
  RECORDS_SEARCHED,
} from '../../../../shared/contracts/pos';
import { type Column, DataTable } from '../../components/data-table';
import { Filter } from '../../components/filter';
import { useMoney } from '../../components/money';
import { Loaded } from '../../components/page-states';
import { requestedPage, Pager } from '../../components/pager';
import { RowLink } from '../../components/row-link';
import { Time, useAbsoluteTime } from '../../components/time';
import { usePosEventList } from '../../services/pos';
import { usePolling } from '../../utils/polling';
import { useText } from '../../utils/text';
import { EVENT_STATES, EventStateBadge } from './badges';
import { type ListQuery, useNarrow } from './list-query';
import { statesOf } from './states';
import { TillFilter } from './till-filter';

const REFRESH_MS = 5000;
const KINDS: readonly PosEventKind[] = ['sale', 'refund', 'inventory', 'closing'];

const useColumns = (): Column<PosEventSummary>[] => {
  const text = useText();
  const shown = useMoney();
  return [
    {
      id: 'external',
      label: text('event.externalId'),
      cell: ({ id, external_id: external }) => <RowLink to={String(id)}>{external}</RowLink>,
    },
    { id: 'kind', label: text('event.kind'), cell: ({ kind }) => text(`event.kind.${kind}`) },
    {
      id: 'state',
      label: text('event.state'),
      cell: (event) => <EventStateBadge event={event} />,
    },
    {
      id: 'amount',
      label: text('event.amount'),
      cell: ({ kind, money }) =>
        money ? shown(kind === 'refund' ? -money.total : money.total, money.currency) : '–',
    },
    { id: 'till', label: text('event.connection'), cell: ({ connection }) => connection.name },
    {
      id: 'occurred',
      label: text('event.occurred'),
      cell: ({ occurred_at: at }) => <Time at={at} />,
    },
    {
      id: 'received',
      label: text('event.received'),
      cell: ({ received_at: at }) => <Time at={at} />,
    },
    {
      id: 'held',
      label: text('event.flags'),
      cell: ({ state, held_until: until, flags }) =>
        state === 'held' && until ? (
          <Time at={until} textColor="secondary600" />
        ) : (
          <Typography variant="pi">{flags.join(', ') || '–'}</Typography>
        ),
    },
  ];
};

const Filters = () => {
  const text = useText();
  const [{ query }] = useQueryParams<ListQuery>();
  const narrow = useNarrow();
  return (
    <Flex gap={2} wrap="wrap" paddingTop={4} paddingBottom={4}>
      <SearchInput
        label={text('event.search')}
        placeholder={text('event.search.hint')}
        trackedEvent={null}
      />
      <Filter
        label="event.filter.state"
        value={query.state}
        options={EVENT_STATES.map((state) => [
          state,
          text(state === 'needs_mapping' ? 'event.filter.needs_mapping' : `event.state.${state}`),
        ])}
        onChange={narrow('state')}
      />
      <Filter
        label="event.filter.kind"
        value={query.kind}
        options={KINDS.map((kind) => [kind, text(`event.kind.${kind}`)])}
        onChange={narrow('kind')}
      />
      <TillFilter />
      <Filter
        label="event.filter.customer"
        value={query.customer}
        options={[['unattached', text('event.customer.unattached')]]}
        onChange={narrow('customer')}
      />
    </Flex>
  );
};

/** How far back a search went. */
const Searched = ({ from }: { from: string | null | undefined }) => {
  const text = useText();
  const absolute = useAbsoluteTime();
  if (!from) return null;
  return (
    <Typography variant="pi" textColor="neutral600">
      {text('event.searched', { n: RECORDS_SEARCHED, at: absolute(from) })}
    </Typography>
  );
};

/** Every record that was accepted, newest first. */
export const AcceptedList = () => {
  const text = useText();
  const navigate = useNavigate();
  const [{ query }] = useQueryParams<ListQuery>();
  const columns = useColumns();
  const search = query._q?.trim() || undefined;
  const events = usePosEventList(
    {
      states: statesOf(query.state),
      kind: (query.kind || undefined) as PosEventKind | undefined,
      connection: query.connection ? Number(query.connection) : undefined,
      unattached: query.customer === 'unattached' || undefined,
      q: search,
      ...requestedPage(query, 20),
    },
    { pollingInterval: usePolling(REFRESH_MS) }
  );
  const filtered = Boolean(
    query.state || query.kind || query.connection || query.customer || search
  );
  return (
    <>
      <Filters />
      <Loaded query={events}>
        {({ data, meta }) => (
          <>
            <DataTable
              label={text('nav.tillRecords')}
              columns={columns}
              rows={data}
              rowId={({ id }) => id}
              onOpen={({ id }) => navigate(String(id))}
              empty={{ text: text(filtered ? 'table.noMatch' : 'event.empty') }}
            />
            {search && <Searched from={meta.searched_from} />}
            {meta.pagination.total > 0 && <Pager pagination={meta.pagination} />}
          </>
        )}
      </Loaded>
    </>
  );
};
