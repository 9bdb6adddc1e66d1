import { Typography } from '@strapi/design-system';
import type { Connection } from '../../../../shared/contracts/pos';
import { useAbsoluteTime } from '../../components/time';
import { useText } from '../../utils/text';
import { useHoursText } from './silence-fields';

/** How often a till is expected and when, and whether it is silent. */
export const Expectation = ({ connection }: { connection: Connection }) => {
  const text = useText();
  const hoursText = useHoursText();
  const absolute = useAbsoluteTime();
  const { expected_every_minutes: minutes, open_hours: hours, silent_since: since } = connection;
  if (minutes === null || hours === null) return text('connection.expectation.none');
  return (
    <>
      {text('connection.expectation.is', { n: minutes, hours: hoursText(hours) })}
      {since && (
        <Typography role="status" textColor="danger600" tag="p">
          {text('connection.silent', { at: absolute(since) })}
        </Typography>
      )}
    </>
  );
};
