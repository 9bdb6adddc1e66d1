import { Flex, Typography } from '@strapi/design-system';
import { RowLink } from '../components/row-link';
import { Time } from '../components/time';
import { DeliveryStateBadge } from '../pages/webhooks/cells';
import { useLog } from '../services/webhooks';
import { usePolling } from '../utils/polling';
import { useText } from '../utils/text';

const SHOWN = 5;
const REFRESH_MS = 10_000;
const LOG = '/plugins/switchboard/deliveries';

interface RecordDeliveriesProps {
  type: string;
  id: string;
}

/** The latest deliveries about one record, each leading to itself in the log. */
const RecordDeliveries = ({ type, id }: RecordDeliveriesProps) => {
  const text = useText();
  const subject = { subject_type: type, subject_id: id };
  const log = useLog({ ...subject, limit: SHOWN }, { pollingInterval: usePolling(REFRESH_MS) });
  const search = new URLSearchParams(subject).toString();
  if (log.error) return <Typography textColor="neutral600">{text('error.load')}</Typography>;
  if (!log.data) return null;
  const { data } = log.data;
  if (data.length === 0) {
    return <Typography textColor="neutral600">{text('panel.empty')}</Typography>;
  }
  return (
    <Flex direction="column" alignItems="stretch" gap={3} width="100%">
      {data.map(({ id: delivery, event, state, created_at: at }) => (
        <Flex key={delivery} direction="column" alignItems="start" gap={1}>
          <RowLink to={`${LOG}?${search}&delivery=${delivery}`}>{event}</RowLink>
          <Flex gap={2}>
            <DeliveryStateBadge state={state} />
            <Time at={at} variant="pi" textColor="neutral600" />
          </Flex>
        </Flex>
      ))}
      <RowLink to={`${LOG}?${search}`}>{text('panel.all')}</RowLink>
    </Flex>
  );
};

export default RecordDeliveries;
