import { Button, Flex } from '@strapi/design-system';
import { useId, useState } from 'react';
import { useIntl } from 'react-intl';
import { styled } from 'styled-components';
import type { ExplanationPoint, LevelExplanation } from '../../../../shared/contracts/stock';
import { type Column, DataTable } from '../../components/data-table';
import { pageOf } from '../../components/pager';
import { Steps } from '../../components/steps';
import { useAbsoluteTime, useNow } from '../../components/time';
import { useText } from '../../utils/text';
import { HEIGHT, scaleOf, WIDTH } from './chart-scale';

const Svg = styled.svg`
  display: block;
  width: 100%;
  height: auto;
  max-height: 32rem;

  text {
    font-size: 11px;
    fill: ${({ theme }) => theme.colors.neutral600};
  }

  /* Drawn smaller there: it has to be larger in the drawing. */
  @media (max-width: 767px) {
    text {
      font-size: 20px;
    }
  }

  .grid {
    stroke: ${({ theme }) => theme.colors.neutral200};
  }

  .level {
    fill: none;
    stroke: ${({ theme }) => theme.colors.primary600};
    stroke-width: 2;
  }

  .count {
    fill: ${({ theme }) => theme.colors.primary600};
  }

  .hit {
    fill: transparent;
  }
`;

/** More points than these are near enough to each other that none can be pointed at. */
const POINTED_AT = 100;
const TABLE_ROWS = 20;

const Line = ({ explanation }: { explanation: LevelExplanation }) => {
  const text = useText();
  const absolute = useAbsoluteTime();
  const { formatDate, formatNumber } = useIntl();
  const { series, since, quantity } = explanation;
  const now = useNow();
  const { left, right, bottom, ticks, xOf, yOf, line } = scaleOf(series, now);
  const [first] = series;
  const dayOf = (at: string | number): string =>
    formatDate(at, { dateStyle: 'short', timeStyle: 'short' });
  if (!first) return null;
  const label = text('level.chart', {
    from: absolute(first.at),
    begin: first.quantity,
    n: quantity,
  });
  return (
    <Svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
      {ticks.map((value) => (
        <g key={value}>
          <line className="grid" x1={left} x2={right} y1={yOf(value)} y2={yOf(value)} />
          <text x={left - 6} y={yOf(value) + 4} textAnchor="end">
            {formatNumber(value, { notation: 'compact' })}
          </text>
        </g>
      ))}
      <path className="level" d={line} />
      <text x={left} y={bottom + 18}>
        {dayOf(first.at)}
      </text>
      <text x={right} y={bottom + 18} textAnchor="end">
        {text('level.chart.now')}
      </text>
      {since !== null && (
        <circle className="count" cx={xOf(Date.parse(first.at))} cy={yOf(first.quantity)} r={5}>
          <title>{text('level.chart.count', { at: absolute(since), n: first.quantity })}</title>
        </circle>
      )}
      {series.length <= POINTED_AT &&
        series.slice(1).map(({ at, quantity: level }) => (
          <circle key={at} className="hit" cx={xOf(Date.parse(at))} cy={yOf(level)} r={8}>
            <title>{`${absolute(at)}: ${formatNumber(level)}`}</title>
          </circle>
        ))}
    </Svg>
  );
};

const PointTable = ({ series, label }: { series: readonly ExplanationPoint[]; label: string }) => {
  const text = useText();
  const absolute = useAbsoluteTime();
  const [page, setPage] = useState(1);
  const shown = pageOf([...series].reverse(), page, TABLE_ROWS);
  const columns: Column<ExplanationPoint>[] = [
    { id: 'at', label: text('level.chart.from'), cell: ({ at }) => absolute(at) },
    { id: 'level', label: text('level.chart.level'), cell: ({ quantity }) => quantity },
  ];
  return (
    <>
      <DataTable
        label={label}
        columns={columns}
        rows={shown.rows}
        rowId={({ at }) => at}
        empty={{ text: text('event.movements.none') }}
      />
      <Steps
        page={shown.pagination.page}
        pageCount={shown.pagination.page_count}
        onChange={setPage}
      />
    </>
  );
};

/** The level over the time since it was counted, stepped, or the same as a table. */
export const LevelChart = ({ explanation }: { explanation: LevelExplanation }) => {
  const text = useText();
  const id = useId();
  const [asTable, setAsTable] = useState(false);
  return (
    <Flex direction="column" alignItems="stretch" gap={2}>
      <Line explanation={explanation} />
      <Flex>
        <Button
          size="S"
          variant="ghost"
          aria-expanded={asTable}
          aria-controls={id}
          onClick={() => setAsTable(!asTable)}
        >
          {text(asTable ? 'level.chart.hideTable' : 'level.chart.showTable')}
        </Button>
      </Flex>
      <div id={id}>
        {asTable && <PointTable series={explanation.series} label={text('level.chart.table')} />}
      </div>
    </Flex>
  );
};
