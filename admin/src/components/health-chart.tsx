import { Box, Flex, Typography } from '@strapi/design-system';
import { useIntl } from 'react-intl';
import { styled } from 'styled-components';
import type { HealthBucket, HealthCounts } from '../../../shared/contracts/overview';
import { useText } from '../utils/text';
import { barPieces, partsOf } from './health-parts';

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

  .failing {
    fill: ${({ theme }) => theme.colors.danger500};
    fill-opacity: 0.45;
  }

  .waiting {
    fill: ${({ theme }) => theme.colors.warning500};
  }

  .none {
    fill: ${({ theme }) => theme.colors.neutral200};
  }
`;

const BAR = 7;
const STEP = 10;
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
      aria-label={text('health.summary', partsOf(counts))}
      viewBox={`0 0 ${buckets.length * STEP} ${height}`}
      height={height}
      preserveAspectRatio="none"
    >
      {buckets.map((bucket, index) => (
        <g key={bucket.from}>
          <title>{`${formatTime(bucket.from)}: ${text('health.summary', partsOf(bucket))}`}</title>
          {barPieces(bucket, most, height).map(({ kind, y, height: size }) => (
            <rect key={kind} className={kind} x={index * STEP} y={y} width={BAR} height={size} />
          ))}
        </g>
      ))}
    </Chart>
  );
};

const COLORS = {
  sent: 'success600',
  failed: 'danger600',
  failing: 'danger600',
  waiting: 'warning700',
} as const;

/** The counts in words, next to or below a chart. */
export const HealthCountsLine = ({ counts }: { counts: HealthCounts }) => {
  const text = useText();
  const parts = partsOf(counts);
  return (
    <Flex gap={3} wrap="wrap">
      {(['sent', 'failed', 'failing', 'waiting'] as const).map((kind) => (
        <Box key={kind}>
          <Typography
            variant="pi"
            fontWeight="semiBold"
            textColor={parts[kind] > 0 ? COLORS[kind] : 'neutral600'}
          >
            {text(`health.${kind}`, { n: parts[kind] })}
          </Typography>
        </Box>
      ))}
    </Flex>
  );
};
