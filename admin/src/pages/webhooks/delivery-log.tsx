import { Flex, Typography } from '@strapi/design-system';
import { useQueryParams } from '@strapi/strapi/admin';
import {
  type Delivery,
  DELIVERY_STATUSES,
  type DeliveryStatus,
} from '../../../../shared/contracts/webhooks';
import { type Column, DataTable } from '../../components/data-table';
import { RowLink } from '../../components/row-link';
import { Filter } from '../../components/filter';
import { Panel } from '../../components/panel';
import { Loaded } from '../../components/page-states';
import { Time } from '../../components/time';
import { useCatalogue, useDeliveries } from '../../services/webhooks';
import { useText } from '../../utils/text';
import { useCause } from './causes';
import { DeliveryStatusBadge, NextTry } from './cells';

/** What the screen shows (docs/contract-webhooks.md#limits). */
const LATEST = 50;
const PENDING_REFRESH_MS = 2000;
const IDLE_REFRESH_MS = 10_000;

interface LogQuery {
  status?: string;
  event?: string;
  delivery?: string;
}

const useColumns = (active: boolean): Column<Delivery>[] => {
  const text = useText();
  const cause = useCause();
  return [
    {
      id: 'event',
      label: text('delivery.event'),
      cell: ({ id, event }) => <RowLink to={{ search: `?delivery=${id}` }}>{event}</RowLink>,
    },
    {
      id: 'status',
      label: text('delivery.status'),
      cell: ({ status, tries }) => <DeliveryStatusBadge status={status} tries={tries} />,
    },
    {
      id: 'answer',
      label: text('delivery.answer'),
      cell: ({ answer, error, tries }) => (
        <Typography textColor={error ? 'danger600' : 'neutral800'}>
          {error && cause.short(error)}
          {!error && answer && text('answer.status', { status: answer.status })}
          {!error && !answer && tries === 0 && '–'}
        </Typography>
      ),
    },
    { id: 'tries', label: text('delivery.tries'), cell: ({ tries }) => tries },
    {
      id: 'next',
      label: text('delivery.next'),
      cell: ({ next_attempt_at: at }) => <NextTry at={at} active={active} />,
    },
    {
      id: 'created',
      label: text('delivery.created'),
      cell: ({ created_at: at }) => <Time at={at} />,
    },
  ];
};

/** The latest deliveries of a webhook. Rows stay in place while they are asked for again. */
export const DeliveryLog = ({ webhookId, active }: { webhookId: number; active: boolean }) => {
  const text = useText();
  const columns = useColumns(active);
  const catalogue = useCatalogue();
  const [{ query }, setQuery] = useQueryParams<LogQuery>();
  const filter = {
    webhookId,
    perPage: LATEST,
    status: (query.status || undefined) as DeliveryStatus | undefined,
    event: query.event || undefined,
  };
  const { currentData } = useDeliveries(filter);
  const pending = currentData?.data.some(({ status }) => status === 'pending') ?? false;
  const log = useDeliveries(filter, {
    pollingInterval: pending ? PENDING_REFRESH_MS : IDLE_REFRESH_MS,
  });
  const names = [...new Set(['ping', ...(catalogue.data ?? []).map(({ event }) => event)])];
  const filtered = Boolean(query.status || query.event);
  const narrow = (name: 'status' | 'event') => (value: string | undefined) =>
    value === undefined ? setQuery({ [name]: '' }, 'remove') : setQuery({ [name]: value });

  return (
    <Panel
      title={text('delivery.log')}
      actions={
        <Flex gap={2} wrap="wrap">
          <Filter
            label="delivery.filter.status"
            value={query.status}
            options={DELIVERY_STATUSES.map((status) => [status, text(`delivery.status.${status}`)])}
            onChange={narrow('status')}
          />
          <Filter
            label="delivery.filter.event"
            value={query.event}
            options={names.map((event) => [event, event])}
            onChange={narrow('event')}
          />
        </Flex>
      }
    >
      <Loaded query={log}>
        {({ data, meta }) => (
          <>
            <DataTable
              label={text('delivery.log')}
              columns={columns}
              rows={data}
              rowId={({ id }) => id}
              onOpen={({ id }) => setQuery({ delivery: String(id) })}
              empty={{ text: text(filtered ? 'table.noMatch' : 'delivery.empty') }}
            />
            {meta.pagination.total > data.length && (
              <Typography variant="pi" textColor="neutral600">
                {text('delivery.latest', { n: LATEST })}
              </Typography>
            )}
          </>
        )}
      </Loaded>
    </Panel>
  );
};
