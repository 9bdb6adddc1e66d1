import { Flex, LinkButton, Typography } from '@strapi/design-system';
import { useIntl } from 'react-intl';
import { Link } from 'react-router-dom';
import type { PosEvent } from '../../../../shared/contracts/pos';
import { type Column, DataTable } from '../../components/data-table';
import { Loaded } from '../../components/page-states';
import { Panel } from '../../components/panel';
import { RowLink } from '../../components/row-link';
import { usePosEvents } from '../../services/pos';
import { usePolling } from '../../utils/polling';
import { useText } from '../../utils/text';
import { EventStateBadge } from '../events/badges';
import { Unexpected, useDifferenceText } from '../events/closing-panel';

const REFRESH_MS = 30_000;
const SHOWN = 10;

/** From when to when a shift went. */
const useShift = () => {
  const { formatDateTimeRange } = useIntl();
  return (from: string, to: string): string =>
    formatDateTimeRange(Date.parse(from), Date.parse(to), {
      dateStyle: 'medium',
      timeStyle: 'short',
    });
};

/** The till's latest closings, each with what it has otherwise than the site. */
export const Closings = ({ connectionId }: { connectionId: number }) => {
  const text = useText();
  const shift = useShift();
  const difference = useDifferenceText();
  const closings = usePosEvents(
    { connection: connectionId, kind: 'closing', perPage: SHOWN },
    { pollingInterval: usePolling(REFRESH_MS) }
  );
  const columns: Column<PosEvent>[] = [
    {
      id: 'id',
      label: text('event.externalId'),
      cell: ({ id, external_id: external }) => (
        <RowLink to={`/plugins/switchboard/records/${id}`}>{external}</RowLink>
      ),
    },
    {
      id: 'shift',
      label: text('closing.shift'),
      cell: ({ closing_summary: closing }) => (closing ? shift(closing.from, closing.to) : '–'),
    },
    {
      id: 'state',
      label: text('event.state'),
      cell: (event) => <EventStateBadge event={event} />,
    },
    {
      id: 'missing',
      wide: true,
      label: text('closing.missing'),
      cell: ({ closing_summary: closing }) => closing?.missing ?? '–',
    },
    {
      id: 'unexpected',
      label: text('closing.unexpected'),
      cell: ({ closing_summary: closing }) => (closing ? <Unexpected closing={closing} /> : '–'),
    },
    {
      id: 'differences',
      label: text('closing.differences'),
      cell: ({ closing_summary: closing }) =>
        closing && closing.differences.length > 0 ? (
          <Flex direction="column" alignItems="start">
            {closing.differences.map((one) => (
              <Typography
                key={`${one.currency} ${one.field}`}
                variant="pi"
                textColor="neutral800"
                style={{ whiteSpace: 'normal' }}
              >
                {difference(one)}
              </Typography>
            ))}
          </Flex>
        ) : (
          '–'
        ),
    },
  ];
  return (
    <Panel
      title={text('closing.title')}
      actions={
        <LinkButton
          tag={Link}
          size="S"
          variant="tertiary"
          to={`/plugins/switchboard/records?connection=${connectionId}&kind=closing`}
        >
          {text('closing.all')}
        </LinkButton>
      }
    >
      <Loaded query={closings}>
        {({ data }) => (
          <DataTable
            label={text('closing.title')}
            columns={columns}
            rows={data}
            rowId={({ id }) => id}
            empty={{ text: text('closing.empty') }}
          />
        )}
      </Loaded>
    </Panel>
  );
};
