import { Flex, Typography } from '@strapi/design-system';
import { useIntl } from 'react-intl';
import type {
  ClosingDifference,
  ClosingSummary,
  PosEventDetail,
} from '../../../../shared/contracts/pos';
import type { MinorSum } from '../../../../shared/minor-sums';
import { DefinitionList } from '../../components/definition-list';
import { useMoney } from '../../components/money';
import { Panel } from '../../components/panel';
import { useAbsoluteTime } from '../../components/time';
import { useText } from '../../utils/text';

/** A count or sum that a till and the site have otherwise, in words. */
export const useDifferenceText = () => {
  const text = useText();
  const money = useMoney();
  const { formatNumber } = useIntl();
  return ({ currency, field, till, site }: ClosingDifference): string => {
    const shown = (value: MinorSum): string =>
      field.endsWith('.total') ? money(value, currency) : formatNumber(Number(value));
    return text(`closing.difference.${field}`, { currency, till: shown(till), site: shown(site) });
  };
};

/** How many records a till does not list, and how many of them the closing does where its list is cut. */
export const Unexpected = ({ closing }: { closing: ClosingSummary }) => {
  const text = useText();
  const { unexpected: all, unexpected_listed: listed } = closing;
  if (listed === undefined) return <>{all}</>;
  return (
    <Typography textColor="neutral800" style={{ whiteSpace: 'normal' }}>
      {text('closing.unexpected.cut', { all, listed })}
    </Typography>
  );
};

const Ids = ({ ids }: { ids: readonly string[] | undefined }) =>
  ids && ids.length > 0 ? <>{ids.join(', ')}</> : <>–</>;

/** How a closing compares with the site's records: exactly what is missing, and which sums differ. */
export const ClosingPanel = ({ event }: { event: PosEventDetail }) => {
  const text = useText();
  const difference = useDifferenceText();
  const absolute = useAbsoluteTime();
  const { closing, closing_summary: summary } = event;
  if (!closing || !summary) return null;
  return (
    <Panel title={text('closing.comparison')}>
      {event.state === 'matched' && <Typography>{text('closing.matched')}</Typography>}
      <DefinitionList
        rows={[
          [text('log.from'), absolute(summary.from)],
          [text('log.to'), absolute(summary.to)],
          [text('closing.missing'), <Ids key="missing" ids={closing.missing} />],
          ...(summary.unexpected_listed === undefined
            ? []
            : [
                [
                  text('closing.unexpected.count'),
                  <Unexpected key="count" closing={summary} />,
                ] as const,
              ]),
          [text('closing.unexpected'), <Ids key="unexpected" ids={closing.unexpected} />],
        ]}
      />
      {closing.differences.length > 0 && (
        <Flex tag="ul" direction="column" alignItems="start" gap={1}>
          {closing.differences.map((one) => (
            <Typography key={`${one.currency} ${one.field}`} tag="li" textColor="neutral800">
              {difference(one)}
            </Typography>
          ))}
        </Flex>
      )}
    </Panel>
  );
};
