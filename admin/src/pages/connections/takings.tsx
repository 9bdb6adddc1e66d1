import { Button, Flex, Grid, LinkButton, Typography } from '@strapi/design-system';
import { useState } from 'react';
import { Link } from 'react-router-dom';
import type { SalesFigures, SalesRow } from '../../../../shared/contracts/pos';
import { type Column, DataTable } from '../../components/data-table';
import { useMoney } from '../../components/money';
import { Loaded } from '../../components/page-states';
import { Panel } from '../../components/panel';
import { useSales, useShopDay } from '../../services/sales';
import { addedUp, byDay, dayAfter, daysFromTo, rowsWithin, takingsOf } from '../../utils/sales';
import { usePolling } from '../../utils/polling';
import { type TextKey, useText } from '../../utils/text';
import { TakingsChart, useDayLabel } from './takings-chart';

const REFRESH_MS = 30_000;
/** Days back from today: the first and the last of each span. */
const SPANS = [
  ['takings.today', 0, 0],
  ['takings.yesterday', -1, -1],
  ['takings.week', -6, 0],
] as const satisfies readonly (readonly [TextKey, number, number])[];
const WEEK = 6;

/** The takings of a span, one line a currency. */
const Span = ({ label, rows }: { label: string; rows: readonly SalesRow[] }) => {
  const text = useText();
  const money = useMoney();
  const sums = addedUp(rows);
  return (
    <Flex tag="section" aria-label={label} direction="column" alignItems="start" gap={1}>
      <Typography variant="sigma" textColor="neutral600" tag="h3">
        {label}
      </Typography>
      {sums.length === 0 && (
        <Typography textColor="neutral600">{text('takings.nothing')}</Typography>
      )}
      {sums.map((sum) => (
        <Flex key={sum.currency} direction="column" alignItems="start">
          <Typography variant="beta" tag="p">
            {money(takingsOf(sum), sum.currency)}
          </Typography>
          <Typography variant="pi" textColor="neutral600" tag="p">
            {text('takings.counts', {
              sales: sum.sales.count,
              refunds: sum.refunds.count,
              sold: sum.pieces.sold,
              returned: sum.pieces.returned,
            })}
          </Typography>
        </Flex>
      ))}
    </Flex>
  );
};

type Day = { day: string } & SalesFigures;

/** The data of the chart and more, as a table for screen readers. */
const Numbers = ({ days }: { days: readonly Day[] }) => {
  const text = useText();
  const money = useMoney();
  const dayLabel = useDayLabel();
  const columns: Column<Day>[] = [
    { id: 'day', label: text('days.day'), cell: ({ day }) => dayLabel(day) },
    {
      id: 'takings',
      label: text('days.takings'),
      cell: (day) => money(takingsOf(day), day.currency),
    },
    { id: 'sales', label: text('days.sales'), cell: ({ sales }) => sales.count },
    { id: 'refunds', label: text('days.refunds'), cell: ({ refunds }) => refunds.count },
    { id: 'sold', label: text('days.sold'), cell: ({ pieces }) => pieces?.sold ?? 0 },
    { id: 'returned', label: text('days.returned'), cell: ({ pieces }) => pieces?.returned ?? 0 },
  ];
  return (
    <DataTable
      label={text('takings.numbers', { currency: days[0]?.currency ?? '' })}
      columns={columns}
      rows={days}
      rowId={({ day }) => day}
      empty={{ text: text('takings.nothing') }}
    />
  );
};

interface WeekProps {
  connectionId: number;
  today: string;
  zone: string;
}

const Week = ({ connectionId, today, zone }: WeekProps) => {
  const text = useText();
  const [asNumbers, setAsNumbers] = useState(false);
  const from = dayAfter(today, -WEEK);
  const sales = useSales(
    { from, to: today, group: 'day', connection: connectionId },
    { pollingInterval: usePolling(REFRESH_MS) }
  );
  return (
    <Panel
      title={text('takings.title')}
      actions={
        <Flex gap={2} wrap="wrap">
          <Button
            size="S"
            variant="ghost"
            aria-pressed={asNumbers}
            onClick={() => setAsNumbers(!asNumbers)}
          >
            {text(asNumbers ? 'figures.asCharts' : 'figures.asNumbers')}
          </Button>
          <LinkButton
            tag={Link}
            size="S"
            variant="tertiary"
            to={`/plugins/switchboard/sales?connection=${connectionId}`}
          >
            {text('takings.more')}
          </LinkButton>
        </Flex>
      }
    >
      <Loaded query={sales}>
        {({ data }) => (
          <Flex direction="column" alignItems="stretch" gap={4}>
            <Grid.Root gap={4} gridCols={12}>
              {SPANS.map(([label, first, last]) => (
                <Grid.Item key={label} col={4} xs={12} alignItems="start">
                  <Span
                    label={text(label)}
                    rows={rowsWithin(data, dayAfter(today, first), dayAfter(today, last))}
                  />
                </Grid.Item>
              ))}
            </Grid.Root>
            {addedUp(data).map(({ currency }) => {
              const days = byDay(data, currency, daysFromTo(from, today));
              return asNumbers ? (
                <Numbers key={currency} days={days} />
              ) : (
                <TakingsChart key={currency} days={days} currency={currency} />
              );
            })}
            <Typography variant="pi" textColor="neutral600">
              {text('takings.hint', { zone })}
            </Typography>
          </Flex>
        )}
      </Loaded>
    </Panel>
  );
};

/** The takings of a till today, yesterday and in the shop's last seven days. */
export const Takings = ({ connectionId }: { connectionId: number }) => {
  // Asked again now and then: a page may be open at midnight.
  const day = useShopDay(undefined, { pollingInterval: usePolling(REFRESH_MS) });
  return (
    <Loaded query={day}>
      {({ today, time_zone: zone }) => (
        <Week connectionId={connectionId} today={today} zone={zone} />
      )}
    </Loaded>
  );
};
