import { Typography } from '@strapi/design-system';
import type { Connection } from '../../../../shared/contracts/pos';
import { Pill } from '../../components/pill';
import { useText } from '../../utils/text';

export const ConnectionBadge = ({
  connection: { mode, active, revoked_at: revoked },
}: {
  connection: Pick<Connection, 'mode' | 'active' | 'revoked_at'>;
}) => {
  const text = useText();
  if (revoked) return <Pill variant="danger">{text('connection.revoked')}</Pill>;
  if (!active) return <Pill variant="warning">{text('connection.off')}</Pill>;
  return (
    <Pill variant={mode === 'live' ? 'success' : 'secondary'}>
      {text(`connection.mode.${mode}`)}
    </Pill>
  );
};

/** From here on a till's clock is worth a word; at 300 seconds its records are refused. */
const NOTABLE_SKEW_SECONDS = 30;

export const ClockSkew = ({ seconds }: { seconds: number | null }) => {
  const text = useText();
  if (seconds === null) return <Typography textColor="neutral600">–</Typography>;
  const n = Math.abs(seconds);
  if (n < NOTABLE_SKEW_SECONDS) return <Typography>{text('connection.skew.fine')}</Typography>;
  return (
    <Typography textColor="neutral800">
      {text(seconds > 0 ? 'connection.skew.ahead' : 'connection.skew.behind', { n })}
    </Typography>
  );
};
