import { Button, Flex, Typography } from '@strapi/design-system';
import { useEffect, useMemo, useState } from 'react';
import { useNavigate } from 'react-router-dom';
import type { DeliveryFigure, DeliveryFigures } from '../../../../shared/contracts/overview';
import { type Column, DataTable } from '../../components/data-table';
import { Loaded } from '../../components/page-states';
import { Panel } from '../../components/panel';
import { RowLink } from '../../components/row-link';
import { useAbsoluteTime } from '../../components/time';
import { useFigures } from '../../services/webhooks';
import { usePolling } from '../../utils/polling';
import { useText } from '../../utils/text';
import { OutcomeChart, ResponseChart } from './figures-chart';

const HOUR_MS = 3_600_000;
const RANGES = { '24h': 24, '7d': 7 * 24, '30d': 30 * 24 } as const;
type Range = keyof typeof RANGES;
const REFRESH_MS = 60_000;

/** The deliveries that were made in a span. */
const logOf = ({ from }: DeliveryFigure, stepHours: number, webhook: number | undefined): string =>
  `/plugins/switchboard/deliveries?${new URLSearchParams({
    ...(webhook !== undefined && { webhook: String(webhook) }),
    from,
    to: new Date(Date.parse(from) + stepHours * HOUR_MS).toISOString(),
  }).toString()}`;

const Legend = ({ total }: { total: DeliveryFigures['total'] }) => {
  const text = useText();
  const { sent, failed, response } = total;
  return (
    <Flex gap={4} wrap="wrap">
      <Typography textColor="success600">{text('figures.sent', { n: sent })}</Typography>
      <Typography textColor="danger600">{text('figures.failed', { n: failed })}</Typography>
      <Typography textColor="neutral600">
        {response
          ? text('figures.response', { median: response.median_ms, p95: response.p95_ms })
          : text('figures.response.none')}
      </Typography>
    </Flex>
  );
};

interface NumbersProps {
  figures: DeliveryFigures;
  webhook: number | undefined;
}

/** The data of the charts as a table, for screen readers. */
const Numbers = ({ figures, webhook }: NumbersProps) => {
  const text = useText();
  const absolute = useAbsoluteTime();
  const columns: Column<DeliveryFigure>[] = [
    {
      id: 'from',
      label: text('figures.from'),
      cell: (span) => (
        <RowLink to={logOf(span, figures.step_hours, webhook)}>{absolute(span.from)}</RowLink>
      ),
    },
    { id: 'sent', label: text('figures.column.sent'), cell: ({ sent }) => sent },
    { id: 'failed', label: text('figures.column.failed'), cell: ({ failed }) => failed },
    {
      id: 'median',
      label: text('figures.column.median'),
      cell: ({ response }) => response?.median_ms ?? '–',
    },
    {
      id: 'p95',
      label: text('figures.column.p95'),
      cell: ({ response }) => response?.p95_ms ?? '–',
    },
  ];
  return (
    <DataTable
      label={text('figures.title')}
      columns={columns}
      rows={figures.spans.filter(({ sent, failed }) => sent + failed > 0)}
      rowId={({ from }) => from}
      empty={{ text: text('figures.empty') }}
    />
  );
};

const hourNow = (): number => Math.floor(Date.now() / HOUR_MS);

/** The hour that runs, in hours since 1970; a page may stay open for days. */
const useHour = (): number => {
  const [hour, setHour] = useState(hourNow);
  useEffect(() => {
    const timer = setInterval(() => setHour(hourNow()), REFRESH_MS);
    return () => clearInterval(timer);
  }, []);
  return hour;
};

/** Attempts by outcome and response times, of one webhook or of all. */
export const FiguresPanel = ({ webhook }: { webhook?: number }) => {
  const text = useText();
  const navigate = useNavigate();
  const [range, setRange] = useState<Range>('24h');
  const [asNumbers, setAsNumbers] = useState(false);
  const hour = useHour();
  const times = useMemo(() => {
    // To the end of the hour that runs: the question stays the same while it is asked again.
    const to = (hour + 1) * HOUR_MS;
    return {
      from: new Date(to - RANGES[range] * HOUR_MS).toISOString(),
      to: new Date(to).toISOString(),
    };
  }, [hour, range]);
  const figures = useFigures({ webhook, ...times }, { pollingInterval: usePolling(REFRESH_MS) });
  return (
    <Panel
      title={text('figures.title')}
      actions={
        <Flex gap={2} wrap="wrap">
          {(Object.keys(RANGES) as Range[]).map((one) => (
            <Button
              key={one}
              size="S"
              variant={one === range ? 'secondary' : 'tertiary'}
              aria-pressed={one === range}
              onClick={() => setRange(one)}
            >
              {text(`figures.range.${one}`)}
            </Button>
          ))}
          <Button
            size="S"
            variant="ghost"
            aria-pressed={asNumbers}
            onClick={() => setAsNumbers(!asNumbers)}
          >
            {text(asNumbers ? 'figures.asCharts' : 'figures.asNumbers')}
          </Button>
        </Flex>
      }
    >
      <Loaded query={figures}>
        {(data) => (
          <Flex direction="column" alignItems="stretch" gap={4}>
            <Legend total={data.total} />
            {asNumbers ? (
              <Numbers figures={data} webhook={webhook} />
            ) : (
              <>
                <Typography variant="sigma" textColor="neutral600" tag="h3">
                  {text('figures.outcomes')}
                </Typography>
                <OutcomeChart
                  spans={data.spans}
                  stepHours={data.step_hours}
                  onOpen={(span) => navigate(logOf(span, data.step_hours, webhook))}
                />
                <Typography variant="pi" textColor="neutral600">
                  {text('figures.leadsTo')}
                </Typography>
                <Typography variant="sigma" textColor="neutral600" tag="h3">
                  {text('figures.responses')}
                </Typography>
                <ResponseChart spans={data.spans} stepHours={data.step_hours} />
              </>
            )}
          </Flex>
        )}
      </Loaded>
    </Panel>
  );
};
