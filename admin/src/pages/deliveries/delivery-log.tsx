import { Box, Button, Checkbox, Flex, Typography } from '@strapi/design-system';
import { ArrowUp, ArrowDown } from '@strapi/icons';
import { useState } from 'react';
import type { CursorPage, Delivery } from '../../../../shared/contracts/webhooks';
import { type Column, DataTable } from '../../components/data-table';
import { Loaded } from '../../components/page-states';
import { Panel } from '../../components/panel';
import { RecordLink } from '../../components/record-link';
import { RowLink } from '../../components/row-link';
import { Time } from '../../components/time';
import { useAccess } from '../../permissions';
import { useHealth, useLog } from '../../services/webhooks';
import { useText } from '../../utils/text';
import { useCause } from '../webhooks/causes';
import { DeliveryStateBadge, NextTry } from '../webhooks/cells';
import { CauseFilter } from './cause-filter';
import { DeliveryDialog, LOG_ID, rowLinkId } from './delivery-dialog';
import { LogFilters } from './log-filters';
import { type LogQuery, useLogQuery } from './log-query';
import { RecoveryButtons } from './recovery-buttons';
import { RecoveryProgress } from './recovery-progress';
import { WebhookName } from './webhook-name';

const PAGE_SIZE = 50;
const PENDING_REFRESH_MS = 2000;
const IDLE_REFRESH_MS = 10_000;

/** The webhook whose log it is; without one, that of all. */
export interface LogOf {
  id: number;
  active: boolean;
}

interface Selection {
  ids: ReadonlySet<number>;
  toggle(id: number): void;
}

/** True if a recovery would send the delivery again. */
const isRecoverable = ({ state }: Delivery): boolean => state === 'failing' || state === 'failed';

const useColumns = (
  log: LogQuery,
  webhook: LogOf | undefined,
  selection: Selection | undefined
): Column<Delivery>[] => {
  const text = useText();
  const cause = useCause();
  const health = useHealth();
  const isServed = (id: number): boolean =>
    webhook?.active ??
    health.data?.webhooks.find((one) => one.webhook_id === id)?.health.state !== 'off';
  return [
    ...(selection
      ? [
          {
            id: 'select',
            label: text('recovery.select'),
            hiddenLabel: true,
            interactive: true,
            cell: (delivery: Delivery) =>
              isRecoverable(delivery) && (
                <Checkbox
                  aria-label={text('recovery.selectOne', {
                    event: delivery.event,
                    id: delivery.id,
                  })}
                  checked={selection.ids.has(delivery.id)}
                  onCheckedChange={() => selection.toggle(delivery.id)}
                />
              ),
          },
        ]
      : []),
    {
      id: 'event',
      label: text('delivery.event'),
      cell: ({ id, event }) => (
        <RowLink id={rowLinkId(id)} to={log.addressOf(id)}>
          {event}
        </RowLink>
      ),
    },
    {
      id: 'record',
      label: text('delivery.record'),
      interactive: true,
      cell: ({ subject }) => <RecordLink subject={subject} />,
    },
    ...(webhook
      ? []
      : [
          {
            id: 'webhook',
            label: text('delivery.webhook'),
            interactive: true,
            cell: ({ webhook_id: id }: Delivery) => <WebhookName id={id} />,
          },
        ]),
    {
      id: 'state',
      label: text('delivery.status'),
      cell: ({ state }) => <DeliveryStateBadge state={state} />,
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
    { id: 'tries', wide: true, label: text('delivery.tries'), cell: ({ tries }) => tries },
    {
      id: 'next',
      wide: true,
      label: text('delivery.next'),
      cell: ({ next_attempt_at: at, webhook_id: id }) => <NextTry at={at} active={isServed(id)} />,
    },
    {
      id: 'created',
      label: text('delivery.created'),
      cell: ({ created_at: at }) => <Time at={at} />,
    },
  ];
};

const toggled = (ids: ReadonlySet<number>, id: number): ReadonlySet<number> => {
  const next = new Set(ids);
  if (!next.delete(id)) next.add(id);
  return next;
};

const Footer = ({ meta, log }: { meta: CursorPage<Delivery>['meta']; log: LogQuery }) => {
  const text = useText();
  const { total, total_capped: capped, searched_from: from, next_cursor: next } = meta;
  return (
    <Flex justifyContent="space-between" wrap="wrap" gap={2}>
      <Typography variant="pi" textColor="neutral600" role="status">
        {text(capped ? 'log.total.capped' : 'log.total', { n: total })}{' '}
        {from && (
          <>
            {text('log.searchedFrom')} <Time at={from} variant="pi" textColor="neutral600" both />
          </>
        )}
      </Typography>
      <Flex gap={2}>
        {log.cursor && (
          <Button
            size="S"
            variant="tertiary"
            startIcon={<ArrowUp />}
            onClick={() => log.toPage(undefined)}
          >
            {text('log.newest')}
          </Button>
        )}
        {next && (
          <Button
            size="S"
            variant="tertiary"
            startIcon={<ArrowDown />}
            onClick={() => log.toPage(next)}
          >
            {text('log.older')}
          </Button>
        )}
      </Flex>
    </Flex>
  );
};

/**
 * Deliveries, newest first, of one webhook or of all. Filters, page and the open delivery are in the
 * address. Rows stay in place while they are asked for again.
 */
export const DeliveryLog = ({ webhook }: { webhook?: LogOf }) => {
  const text = useText();
  const log = useLogQuery(webhook?.id);
  const { can } = useAccess();
  const [chosen, setChosen] = useState<ReadonlySet<number>>(new Set());
  const selection = {
    ids: chosen,
    toggle: (id: number) => setChosen((before) => toggled(before, id)),
  };
  const columns = useColumns(log, webhook, can('webhooks.update') ? selection : undefined);
  const page = { ...log.filter, cursor: log.cursor, limit: PAGE_SIZE };
  const { currentData } = useLog(page);
  const isPending = currentData?.data.some(({ status }) => status === 'pending') ?? false;
  const refreshMs = isPending ? PENDING_REFRESH_MS : IDLE_REFRESH_MS;
  const deliveries = useLog(page, { pollingInterval: log.cursor ? 0 : refreshMs });

  return (
    <Box id={LOG_ID} tabIndex={-1}>
      <Panel title={text('delivery.log')}>
        <LogFilters log={log} overAll={webhook === undefined} />
        <CauseFilter
          filter={log.filter}
          chosen={log.value('cause')}
          refreshMs={IDLE_REFRESH_MS}
          onChoose={(cause) => log.narrow({ cause })}
        />
        <RecoveryProgress />
        {can('webhooks.update') && (
          <RecoveryButtons
            filter={log.filter}
            chosen={chosen}
            refreshMs={IDLE_REFRESH_MS}
            onStarted={() => setChosen(new Set())}
          />
        )}
        <Loaded query={deliveries}>
          {({ data, meta }) => (
            <>
              <DataTable
                label={text('delivery.log')}
                columns={columns}
                rows={data}
                rowId={({ id }) => id}
                onOpen={({ id }) => log.open(id)}
                empty={{ text: text(log.isFiltered ? 'table.noMatch' : 'delivery.empty') }}
              />
              <Footer meta={meta} log={log} />
            </>
          )}
        </Loaded>
      </Panel>
      {log.delivery && (
        <DeliveryDialog
          id={log.delivery}
          webhook={webhook?.id}
          onClose={() => log.open(undefined)}
        />
      )}
    </Box>
  );
};
