import { Box, Button, Checkbox, Flex, Typography } from '@strapi/design-system';
import { ArrowUp, ArrowDown } from '@strapi/icons';
import { useState } from 'react';
import type { CursorPage, DeliverySummary } from '../../../../shared/contracts/webhooks';
import { type Column, DataTable } from '../../components/data-table';
import { Loaded } from '../../components/page-states';
import { Panel } from '../../components/panel';
import { RecordLink } from '../../components/record-link';
import { RowLink } from '../../components/row-link';
import { Time, useIsNow } from '../../components/time';
import { useAccess } from '../../permissions';
import { useLog } from '../../services/webhooks';
import { isDueSoon, usePolling } from '../../utils/polling';
import { type Translate, useText } from '../../utils/text';
import { useCause } from '../webhooks/causes';
import { DeliveryStateBadge, NextTry } from '../webhooks/cells';
import { CauseFilter } from './cause-filter';
import { DeliveryDialog, LOG_ID, rowLinkId } from './delivery-dialog';
import { FilterChips, LogFilters } from './log-filters';
import { type LogQuery, useLogQuery } from './log-query';
import { RecoveryButtons } from './recovery-buttons';
import { RecoveryProgress } from './recovery-progress';
import { WebhookName } from './webhook-name';

const PAGE_SIZE = 50;
const DUE_REFRESH_MS = 2000;
const REFRESH_MS = 10_000;

/** The webhook whose log it is; without one, that of all. */
export interface LogOf {
  id: number;
  active: boolean;
}

interface Selection {
  ids: ReadonlySet<number>;
  /** Deliveries of the page that can be chosen. */
  offered: readonly number[];
  choose(ids: readonly number[], chosen: boolean): void;
}

/** True if a recovery would send the delivery again. */
const isRecoverable = ({ state }: DeliverySummary): boolean =>
  state === 'failing' || state === 'failed';

const selectColumn = (selection: Selection, text: Translate): Column<DeliverySummary> => {
  const { ids, offered, choose } = selection;
  const chosen = offered.filter((id) => ids.has(id)).length;
  return {
    id: 'select',
    label: text('recovery.select'),
    hiddenLabel: true,
    heading: offered.length > 0 && (
      <Checkbox
        aria-label={text('recovery.selectAll')}
        checked={chosen === offered.length || (chosen > 0 && 'indeterminate')}
        onCheckedChange={(all) => choose(offered, all !== false)}
      />
    ),
    interactive: true,
    cell: (delivery) =>
      isRecoverable(delivery) && (
        <Checkbox
          aria-label={text('recovery.selectOne', { event: delivery.event, id: delivery.id })}
          checked={ids.has(delivery.id)}
          onCheckedChange={(one) => choose([delivery.id], one !== false)}
        />
      ),
  };
};

const useColumns = (
  log: LogQuery,
  webhook: LogOf | undefined,
  selection: Selection | undefined
): Column<DeliverySummary>[] => {
  const text = useText();
  const cause = useCause();
  return [
    ...(selection ? [selectColumn(selection, text)] : []),
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
            cell: ({ webhook_id: id, webhook_name: name }: DeliverySummary) => (
              <WebhookName id={id} name={name} />
            ),
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
      cell: ({ response_code: status, error, tries }) => (
        <Typography textColor={error ? 'danger600' : 'neutral800'}>
          {error && cause.short(error)}
          {!error && status !== null && text('answer.status', { status })}
          {!error && status === null && tries === 0 && '–'}
        </Typography>
      ),
    },
    { id: 'tries', wide: true, label: text('delivery.tries'), cell: ({ tries }) => tries },
    {
      id: 'next',
      wide: true,
      label: text('delivery.next'),
      cell: ({ next_attempt_at: at, webhook_active: active }) => (
        <NextTry at={at} active={active} />
      ),
    },
    {
      id: 'created',
      label: text('delivery.created'),
      cell: ({ created_at: at }) => <Time at={at} />,
    },
  ];
};

const Footer = ({ meta, log }: { meta: CursorPage<DeliverySummary>['meta']; log: LogQuery }) => {
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

/** The deliveries that were picked to be sent again. */
const useSelection = (rows: readonly DeliverySummary[]) => {
  const [ids, setIds] = useState<ReadonlySet<number>>(new Set());
  const selection: Selection = {
    ids,
    offered: rows.filter(isRecoverable).map(({ id }) => id),
    choose: (some, isChosen) =>
      setIds((before) => {
        const next = new Set(before);
        for (const id of some) {
          if (isChosen) next.add(id);
          else next.delete(id);
        }
        return next;
      }),
  };
  return { selection, clear: () => setIds(new Set()) };
};

/** The page of the log that is shown, asked for often while one of its deliveries is due. */
const useShownPage = (log: LogQuery) => {
  const page = { ...log.filter, cursor: log.cursor, limit: PAGE_SIZE };
  const { currentData } = useLog(page);
  const isDue = useIsNow((now) =>
    Boolean(
      currentData?.data.some(
        ({ next_attempt_at: at, webhook_active: active }) => active && isDueSoon(at, now)
      )
    )
  );
  const refreshMs = usePolling(isDue ? DUE_REFRESH_MS : REFRESH_MS);
  return useLog(page, { pollingInterval: log.cursor ? 0 : refreshMs });
};

/**
 * Deliveries, newest first, of one webhook or of all. Filters, page and the open delivery are in the
 * address. Rows stay in place while they are asked for again.
 */
export const DeliveryLog = ({ webhook }: { webhook?: LogOf }) => {
  const text = useText();
  const log = useLogQuery(webhook?.id);
  const { can } = useAccess();
  const deliveries = useShownPage(log);
  const { selection, clear } = useSelection(deliveries.data?.data ?? []);
  const columns = useColumns(log, webhook, can('webhooks.update') ? selection : undefined);

  return (
    <Box id={LOG_ID} tabIndex={-1}>
      <Panel title={text('delivery.log')}>
        <LogFilters log={log} overAll={webhook === undefined} />
        <FilterChips log={log} />
        <CauseFilter
          filter={log.filter}
          chosen={log.value('cause')}
          onChoose={(cause) => log.narrow({ cause })}
        />
        <RecoveryProgress />
        {can('webhooks.update') && (
          <RecoveryButtons filter={log.filter} chosen={selection.ids} onStarted={clear} />
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
