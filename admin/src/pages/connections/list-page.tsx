import { LinkButton, Typography } from '@strapi/design-system';
import { Plus } from '@strapi/icons';
import { Layouts, Page } from '@strapi/strapi/admin';
import { Link, useNavigate } from 'react-router-dom';
import type { ConnectionSummary } from '../../../../shared/contracts/pos';
import { type Column, DataTable } from '../../components/data-table';
import { Loaded } from '../../components/page-states';
import { Time } from '../../components/time';
import { useAccess } from '../../permissions';
import { useConnections } from '../../services/pos';
import { usePolling } from '../../utils/polling';
import { useText } from '../../utils/text';
import { RowLink } from '../../components/row-link';
import { ClockSkew, ConnectionBadge } from './badges';

const REFRESH_MS = 10_000;

const useColumns = (): Column<ConnectionSummary>[] => {
  const text = useText();
  return [
    {
      id: 'name',
      label: text('connection.name'),
      cell: ({ id, name }) => <RowLink to={String(id)}>{name}</RowLink>,
    },
    {
      id: 'mode',
      label: text('connection.mode'),
      cell: (connection) => <ConnectionBadge connection={connection} />,
    },
    {
      id: 'locations',
      label: text('connection.locations'),
      cell: ({ locations, location_count: count }) => {
        const more = count - locations.length;
        return `${locations.join(', ') || '–'}${more > 0 ? ` +${more}` : ''}`;
      },
    },
    {
      id: 'seen',
      label: text('connection.seen'),
      cell: ({ last_seen_at: at }) => (at ? <Time at={at} /> : text('connection.neverSeen')),
    },
    {
      id: 'skew',
      label: text('connection.skew'),
      cell: ({ clock_skew_seconds: seconds }) => <ClockSkew seconds={seconds} />,
    },
    {
      id: 'error',
      label: text('connection.error'),
      cell: ({ last_error: error, last_error_at: at }) =>
        error ? (
          <Typography textColor="danger600">
            {error} {at && <Time at={at} variant="pi" textColor="neutral600" />}
          </Typography>
        ) : (
          '–'
        ),
    },
  ];
};

const ConnectionListPage = () => {
  const text = useText();
  const navigate = useNavigate();
  const { can } = useAccess();
  const connections = useConnections(undefined, { pollingInterval: usePolling(REFRESH_MS) });
  const columns = useColumns();
  const create = can('connections.manage') && (
    <LinkButton tag={Link} to="create" startIcon={<Plus />} size="S">
      {text('connection.create')}
    </LinkButton>
  );
  return (
    <Page.Main>
      <Page.Title>{text('nav.tills')}</Page.Title>
      <Layouts.Header
        title={text('nav.tills')}
        subtitle={text('connection.subtitle')}
        primaryAction={create}
      />
      <Layouts.Content>
        <Loaded query={connections}>
          {(rows) => (
            <DataTable
              label={text('nav.tills')}
              columns={columns}
              rows={rows}
              rowId={({ id }) => id}
              onOpen={({ id }) => navigate(String(id))}
              empty={{ text: text('connection.empty'), action: create }}
            />
          )}
        </Loaded>
      </Layouts.Content>
    </Page.Main>
  );
};

export default ConnectionListPage;
