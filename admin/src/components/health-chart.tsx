import { Box, Flex, Typography } from '@strapi/design-system';
import { useIntl } from 'react-intl';
import { styled } from 'styled-components';
import type { HealthBucket, HealthCounts } from '../../../shared/contracts/overview';
import { useText } from '../utils/text';

const Chart = styled.svg`
  display: block;
  width: 100%;
  overflow: visible;

  .sent {
    fill: ${({ theme }) => theme.colors.success500};
  }

  .failed {
    fill: ${({ theme }) => theme.colors.danger500};
  }

  .pending {
    fill: ${({ theme }) => theme.colors.warning500};
  }

  .none {
    fill: ${({ theme }) => theme.colors.neutral200};
  }
`;

const BAR = 7;
const STEP = 10;
const KINDS = ['failed', 'pending', 'sent'] as const;

interface Piece {
  kind: (typeof KINDS)[number] | 'none';
  y: number;
  height: number;
}

/** The pieces of one bar, from the bottom up. A few failures among many successes still show. */
export const barPieces = (counts: HealthCounts, most: number, height: number): Piece[] => {
  const total = counts.failed + counts.pending + counts.sent;
  if (total === 0) return [{ kind: 'none', y: height - 1, height: 1 }];
  let top = height;
  return KINDS.filter((kind) => counts[kind] > 0).map((kind) => {
    const size = Math.max(2, (counts[kind] / most) * (height - 4));
    top -= size;
    return { kind, y: top, height: size };
  });
};

interface HealthChartProps {
  buckets: readonly HealthBucket[];
  counts: HealthCounts;
  height?: number;
}

export const HealthChart = ({ buckets, counts, height = 28 }: HealthChartProps) => {
  const text = useText();
  const { formatTime } = useIntl();
  const most = Math.max(1, ...buckets.map(({ failed, pending, sent }) => failed + pending + sent));
  return (
    <Chart
      role="img"
      aria-label={text('health.summary', { ...counts })}
      viewBox={`0 0 ${buckets.length * STEP} ${height}`}
      height={height}
      preserveAspectRatio="none"
    >
      {buckets.map((bucket, index) => (
        <g key={bucket.from}>
          <title>
            {`${formatTime(bucket.from)}: ${text('health.summary', {
              sent: bucket.sent,
              failed: bucket.failed,
              pending: bucket.pending,
            })}`}
          </title>
          {barPieces(bucket, most, height).map(({ kind, y, height: size }) => (
            <rect key={kind} className={kind} x={index * STEP} y={y} width={BAR} height={size} />
          ))}
        </g>
      ))}
    </Chart>
  );
};

const COLORS = { sent: 'success600', failed: 'danger600', pending: 'warning700' } as const;

/** The counts in words, beside or below a chart. */
export const HealthCountsLine = ({ counts }: { counts: HealthCounts }) => {
  const text = useText();
  return (
    <Flex gap={3} wrap="wrap">
      {(['sent', 'failed', 'pending'] as const).map((kind) => (
        <Box key={kind}>
          <Typography
            variant="pi"
            fontWeight="semiBold"
            textColor={counts[kind] > 0 ? COLORS[kind] : 'neutral600'}
          >
            {text(`health.${kind}`, { n: counts[kind] })}
          </Typography>
        </Box>
      ))}
    </Flex>
  );
};
