import { useIntl } from 'react-intl';
import { styled } from 'styled-components';
import type { SalesFigures } from '../../../../shared/contracts/pos';
import { minorDigits } from '../../../../shared/currencies';
import { useMoney } from '../../components/money';
import { takingsOf } from '../../utils/sales';
import { useText } from '../../utils/text';
import { axisEnd } from '../overview/figures-chart';

const Svg = styled.svg`
  display: block;
  width: 100%;
  max-width: 720px;
  height: auto;

  text {
    font-size: 11px;
    fill: ${({ theme }) => theme.colors.neutral600};
  }

  /* Drawn larger there: it need not be as large in the drawing. */
  @media (min-width: 768px) {
    text {
      font-size: 8px;
    }
  }

  line {
    stroke: ${({ theme }) => theme.colors.neutral200};
  }

  .gain {
    fill: ${({ theme }) => theme.colors.primary600};
  }

  .loss {
    fill: ${({ theme }) => theme.colors.danger500};
  }

  .hit {
    fill: transparent;
  }
`;

const WIDTH = 400;
const HEIGHT = 130;
const LEFT = 48;
const TOP = 8;
const BOTTOM = 18;
const PLOT = HEIGHT - TOP - BOTTOM;
/** The share of its slot that a bar fills. */
const BAR = 0.6;

/** A day of the shop as the reader's language writes it; `brief` where there is little room. */
export const useDayLabel = () => {
  const { formatDate } = useIntl();
  return (day: string, brief = false): string =>
    formatDate(`${day}T00:00:00Z`, {
      weekday: 'short',
      day: 'numeric',
      ...(!brief && { month: 'short' as const }),
      timeZone: 'UTC',
    });
};

interface TakingsChartProps {
  /** Days of one currency, in order. */
  days: readonly ({ day: string } & SalesFigures)[];
  currency: string;
}

/** Takings of one currency, a bar a day; days that gave back more than they took hang below the line. */
export const TakingsChart = ({ days, currency }: TakingsChartProps) => {
  const text = useText();
  const money = useMoney();
  const dayLabel = useDayLabel();
  const unit = 10 ** minorDigits(currency);
  const takings = days.map((day) => Number(takingsOf(day)));
  const most = axisEnd(Math.max(1, ...takings.map((one) => one / unit))) * unit;
  const lowest = Math.min(0, ...takings);
  const least = lowest < 0 ? -axisEnd(-lowest / unit) * unit : 0;
  const yOf = (value: number): number => TOP + ((most - value) / (most - least)) * PLOT;
  const step = (WIDTH - LEFT) / Math.max(1, days.length);
  return (
    <Svg
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      role="img"
      aria-label={text('takings.chart', { currency })}
    >
      {[...new Set([least, 0, most / 2, most])].map((value) => (
        <g key={value}>
          <line x1={LEFT} x2={WIDTH} y1={yOf(value)} y2={yOf(value)} />
          <text x={LEFT - 6} y={yOf(value) + 4} textAnchor="end">
            {money(value, currency, { compact: true })}
          </text>
        </g>
      ))}
      {days.map((one, at) => {
        const { day } = one;
        const value = takings[at] ?? 0;
        const x = LEFT + at * step;
        return (
          <g key={day}>
            <rect
              className={value < 0 ? 'loss' : 'gain'}
              x={x + (step * (1 - BAR)) / 2}
              width={step * BAR}
              y={yOf(Math.max(0, value))}
              height={Math.abs(yOf(0) - yOf(value))}
            />
            <text x={x + step / 2} y={HEIGHT - 6} textAnchor="middle">
              {dayLabel(day, true)}
            </text>
            <rect className="hit" x={x} width={step} y={TOP} height={PLOT}>
              <title>{`${dayLabel(day)}: ${money(takingsOf(one), currency)}`}</title>
            </rect>
          </g>
        );
      })}
    </Svg>
  );
};
