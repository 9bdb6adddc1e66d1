import { Table, Tbody, Td, Tr, Typography } from '@strapi/design-system';
import { Widget } from '@strapi/strapi/admin';
import { Time } from '../components/time';
import { ConnectionBadge } from '../pages/connections/badges';
import { RowLink } from '../components/row-link';
import { useConnections } from '../services/pos';
import { statusOf } from '../utils/errors';
import { usePolling } from '../utils/polling';
import { useText } from '../utils/text';

const SHOWN = 5;
const REFRESH_MS = 30_000;

export const TillsWidget = () => {
  const text = useText();
  const { data, error, isLoading } = useConnections(undefined, {
    pollingInterval: usePolling(REFRESH_MS),
  });
  if (isLoading) return <Widget.Loading />;
  if (statusOf(error) === 404) return <Widget.NoData>{text('feature.off')}</Widget.NoData>;
  if (!data) return <Widget.Error />;
  const tills = data
    .filter(({ revoked_at: revoked }) => revoked === null)
    .sort((a, b) => (b.last_seen_at ?? '').localeCompare(a.last_seen_at ?? ''))
    .slice(0, SHOWN);
  if (tills.length === 0) return <Widget.NoData>{text('widget.tills.empty')}</Widget.NoData>;
  return (
    <Table colCount={3} rowCount={tills.length} aria-label={text('widget.tills.title')}>
      <Tbody>
        {tills.map((till) => (
          <Tr key={till.id}>
            <Td>
              <RowLink to={`/plugins/switchboard/tills/${till.id}`}>{till.name}</RowLink>
            </Td>
            <Td>
              <ConnectionBadge connection={till} />
            </Td>
            <Td>
              {till.last_seen_at ? (
                <Time at={till.last_seen_at} textColor="neutral600" />
              ) : (
                <Typography textColor="neutral600">{text('connection.neverSeen')}</Typography>
              )}
            </Td>
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
};
