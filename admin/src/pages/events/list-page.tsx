import { Flex, LinkButton, Typography } from '@strapi/design-system';
import { Layouts, Page, SearchInput, useQueryParams } from '@strapi/strapi/admin';
import { Link, useNavigate } from 'react-router-dom';
import type { PosEvent, PosEventKind } from '../../../../shared/contracts/pos';
import { type Column, DataTable } from '../../components/data-table';
import { Filter } from '../../components/filter';
import { Loaded } from '../../components/page-states';
import { Pager } from '../../components/pager';
import { Time } from '../../components/time';
import { useAccess } from '../../permissions';
import { useConnections, usePosEvents } from '../../services/pos';
import { useText } from '../../utils/text';
import { RowLink } from '../../components/row-link';
import { EVENT_STATES, EventStateBadge } from './badges';
import { statesOf } from './states';

const REFRESH_MS = 5000;
const KINDS: readonly PosEventKind[] = ['sale', 'refund', 'inventory'];

interface ListQuery {
  _q?: string;
  state?: string;
  kind?: string;
  connection?: string;
  page?: string;
  pageSize?: string;
}

const useColumns = (): Column<PosEvent>[] => {
  const text = useText();
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
      cell: ({ state }) => <EventStateBadge state={state} />,
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

const EventListPage = () => {
  const text = useText();
  const navigate = useNavigate();
  const { can } = useAccess();
  const [{ query }, setQuery] = useQueryParams<ListQuery>();
  const { data: connections = [] } = useConnections(undefined, { skip: !can('connections.read') });
  const events = usePosEvents(
    {
      states: statesOf(query.state),
      kind: (query.kind || undefined) as PosEventKind | undefined,
      connection: query.connection ? Number(query.connection) : undefined,
      externalId: query._q || undefined,
      page: Number(query.page ?? 1),
      perPage: Number(query.pageSize ?? 20),
    },
    { pollingInterval: REFRESH_MS }
  );
  const columns = useColumns();
  const filter = (name: 'state' | 'kind' | 'connection') => (value: string | undefined) =>
    value === undefined
      ? setQuery({ [name]: '' }, 'remove')
      : setQuery({ [name]: value, page: '1' });
  const filtered = Boolean(query.state || query.kind || query.connection || query._q);

  return (
    <Page.Main>
      <Page.Title>{text('nav.events')}</Page.Title>
      <Layouts.Header
        title={text('nav.events')}
        subtitle={text('event.subtitle')}
        primaryAction={
          can('connections.read') && (
            <LinkButton
              tag={Link}
              variant="tertiary"
              to={
                query.connection
                  ? `/plugins/switchboard/connections/${query.connection}#refusals`
                  : '/plugins/switchboard/connections'
              }
            >
              {text('event.refused')}
            </LinkButton>
          )
        }
      />
      <Layouts.Action
        startActions={
          <Flex gap={2} wrap="wrap">
            <SearchInput label={text('event.search')} trackedEvent={null} />
            <Filter
              label="event.filter.state"
              value={query.state}
              options={EVENT_STATES.map((state) => [
                state,
                text(
                  state === 'needs_mapping' ? 'event.filter.needs_mapping' : `event.state.${state}`
                ),
              ])}
              onChange={filter('state')}
            />
            <Filter
              label="event.filter.kind"
              value={query.kind}
              options={KINDS.map((kind) => [kind, text(`event.kind.${kind}`)])}
              onChange={filter('kind')}
            />
            {connections.length > 0 && (
              <Filter
                label="event.filter.connection"
                value={query.connection}
                options={connections.map(({ id, name }) => [String(id), name])}
                onChange={filter('connection')}
              />
            )}
          </Flex>
        }
      />
      <Layouts.Content>
        <Loaded query={events}>
          {({ data, meta }) => (
            <>
              <DataTable
                label={text('nav.events')}
                columns={columns}
                rows={data}
                rowId={({ id }) => id}
                onOpen={({ id }) => navigate(String(id))}
                empty={{ text: text(filtered ? 'table.noMatch' : 'event.empty') }}
              />
              {data.length > 0 && <Pager pagination={meta.pagination} />}
            </>
          )}
        </Loaded>
      </Layouts.Content>
    </Page.Main>
  );
};

export default EventListPage;
