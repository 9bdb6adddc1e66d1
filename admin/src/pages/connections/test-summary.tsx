import { Typography } from '@strapi/design-system';
import { useAccess } from '../../permissions';
import { usePosEvents, useRefusals } from '../../services/pos';
import { useText } from '../../utils/text';
import { needsAttention } from '../events/states';

const LATEST = 100;

/** The effects that the latest test-mode records would have had. */
export const TestSummary = ({ connectionId }: { connectionId: number }) => {
  const text = useText();
  const { can } = useAccess();
  const mayRead = can('pos-events.read');
  const events = usePosEvents(
    { connection: connectionId, perPage: LATEST },
    { skip: !mayRead, refetchOnMountOrArgChange: true }
  );
  const refusals = useRefusals(connectionId, { refetchOnMountOrArgChange: true });
  if (!mayRead)
    return <Typography textAlign="center">{text('connection.goLive.hidden')}</Typography>;
  if (events.isFetching || refusals.isFetching) {
    return <Typography textAlign="center">{text('connection.goLive.loading')}</Typography>;
  }
  if (!events.data || !refusals.data) {
    return <Typography textAlign="center">{text('error.load')}</Typography>;
  }
  const records = events.data.data.filter(({ mode }) => mode === 'test');
  if (records.length === 0 && refusals.data.length === 0) {
    return (
      <Typography textAlign="center" textColor="danger600" fontWeight="bold">
        {text('connection.goLive.nothing')}
      </Typography>
    );
  }
  const problems = records.filter(needsAttention).length;
  const through = records.filter((one) => one.state === 'simulated' && !needsAttention(one)).length;
  return (
    <Typography textAlign="center">
      {text('connection.goLive.summary', {
        total: records.length,
        simulated: through,
        problems,
        refused: refusals.data.length,
      })}
    </Typography>
  );
};
