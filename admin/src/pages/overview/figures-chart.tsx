import { useIntl } from 'react-intl';
import { styled } from 'styled-components';
import type { DeliveryFigure } from '../../../../shared/contracts/overview';
import { useIsNarrow } from '../../components/narrow';
import { useText } from '../../utils/text';

const Svg = styled.svg`
  display: block;
  width: 100%;
  height: auto;

  text {
    font-size: 11px;
    fill: ${({ theme }) => theme.colors.neutral600};
  }

  line {
    stroke: ${({ theme }) => theme.colors.neutral200};
  }

  .sent {
    fill: ${({ theme }) => theme.colors.success500};
  }

  .failed {
    fill: ${({ theme }) => theme.colors.danger500};
  }

  .median,
  .p95 {
    fill: none;
    stroke-width: 2;
  }

  .median {
    stroke: ${({ theme }) => theme.colors.primary600};
  }

  .p95 {
    stroke: ${({ theme }) => theme.colors.warning600};
    stroke-dasharray: 4 3;
  }

  .hit {
    fill: transparent;
    cursor: pointer;
  }

  .hit:hover {
    fill: ${({ theme }) => theme.colors.neutral500};
    fill-opacity: 0.15;
  }
`;

const HEIGHT = 180;
const LEFT = 48;
const BOTTOM = 24;
const TOP = 8;
const PLOT = HEIGHT - BOTTOM - TOP;
/** How wide the drawing is, which is scaled to the screen, and about how many labels its axis has. */
interface Drawing {
  width: number;
  labels: number;
}

const useDrawing = (): Drawing =>
  useIsNarrow() ? { width: 340, labels: 3 } : { width: 720, labels: 6 };

/** A number not below `most` that an axis ends well with: 1, 2 or 5 times a power of ten. */
export const axisEnd = (most: number): number => {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, most)));
  return [1, 2, 5, 10].map((times) => times * power).find((end) => end >= most) ?? most;
};

/** How much of the drawing's width a span has. */
const stepOf = (width: number, spans: readonly unknown[]): number =>
  (width - LEFT) / Math.max(1, spans.length);

const yOf = (value: number, end: number): number => TOP + PLOT - (value / end) * PLOT;

interface ChartProps {
  spans: readonly DeliveryFigure[];
  stepHours: number;
  /** Shows the deliveries of one span. */
  onOpen(span: DeliveryFigure): void;
}

const useSpanLabel = (stepHours: number) => {
  const { formatDate } = useIntl();
  return (from: string): string =>
    stepHours >= 24
      ? formatDate(from, { day: 'numeric', month: 'short', timeZone: 'UTC' })
      : formatDate(from, {
          hour: '2-digit',
          minute: '2-digit',
          ...(stepHours > 1 && { weekday: 'short' as const }),
        });
};

type FrameProps = Omit<ChartProps, 'onOpen'> & Drawing & { end: number };

const Frame = ({ spans, stepHours, end, width, labels }: FrameProps) => {
  const { formatNumber } = useIntl();
  const labelOf = useSpanLabel(stepHours);
  const step = stepOf(width, spans);
  const every = Math.max(1, Math.ceil(spans.length / labels));
  return (
    <>
      {[0, end / 2, end].map((value) => (
        <g key={value}>
          <line x1={LEFT} x2={width} y1={yOf(value, end)} y2={yOf(value, end)} />
          <text x={LEFT - 6} y={yOf(value, end) + 4} textAnchor="end">
            {formatNumber(value, { notation: 'compact' })}
          </text>
        </g>
      ))}
      {spans.map(
        ({ from }, at) =>
          at % every === 0 && (
            <text key={from} x={LEFT + at * step} y={HEIGHT - 6}>
              {labelOf(from)}
            </text>
          )
      )}
    </>
  );
};

/** Attempts by outcome, a bar a span. */
export const OutcomeChart = ({ spans, stepHours, onOpen }: ChartProps) => {
  const text = useText();
  const labelOf = useSpanLabel(stepHours);
  const end = axisEnd(Math.max(2, ...spans.map(({ sent, failed }) => sent + failed)));
  const drawing = useDrawing();
  const step = stepOf(drawing.width, spans);
  return (
    <Svg
      viewBox={`0 0 ${drawing.width} ${HEIGHT}`}
      role="img"
      aria-label={text('figures.outcomes.label')}
    >
      <Frame {...drawing} spans={spans} stepHours={stepHours} end={end} />
      {spans.map((span, at) => {
        const { from, sent, failed } = span;
        const x = LEFT + at * step + 1;
        const width = Math.max(1, step - 2);
        return (
          <g key={from}>
            <rect
              className="failed"
              x={x}
              width={width}
              y={yOf(failed, end)}
              height={(failed / end) * PLOT}
            />
            <rect
              className="sent"
              x={x}
              width={width}
              y={yOf(failed + sent, end)}
              height={(sent / end) * PLOT}
            />
            <rect
              className="hit"
              x={x}
              width={width}
              y={TOP}
              height={PLOT}
              onClick={() => onOpen(span)}
            >
              <title>{`${labelOf(from)}: ${text('figures.span', { sent, failed })}`}</title>
            </rect>
          </g>
        );
      })}
    </Svg>
  );
};

/** A line over the spans in which something was answered, broken where nothing was. */
const lineOf = (values: readonly (number | null)[], step: number, end: number): string =>
  values
    .map((value, at) => {
      if (value === null) return '';
      const begins = (values[at - 1] ?? null) === null;
      // A lone span gets a line as wide as it is.
      const y = yOf(value, end);
      const x = LEFT + at * step;
      return `${begins ? `M${x} ${y}` : `L${x} ${y}`} L${x + step} ${y}`;
    })
    .join(' ');

/** How long receivers took: the median, and what 95 of 100 stayed below. */
export const ResponseChart = ({ spans, stepHours }: Omit<ChartProps, 'onOpen'>) => {
  const text = useText();
  const end = axisEnd(Math.max(2, ...spans.map(({ response }) => response?.p95_ms ?? 0)));
  const drawing = useDrawing();
  const step = stepOf(drawing.width, spans);
  return (
    <Svg
      viewBox={`0 0 ${drawing.width} ${HEIGHT}`}
      role="img"
      aria-label={text('figures.response.label')}
    >
      <Frame {...drawing} spans={spans} stepHours={stepHours} end={end} />
      {(['median', 'p95'] as const).map((kind) => (
        <path
          key={kind}
          className={kind}
          d={lineOf(
            spans.map(({ response }) => response?.[`${kind}_ms`] ?? null),
            step,
            end
          )}
        />
      ))}
    </Svg>
  );
};
