import { Box, Flex, LinkButton, Typography } from '@strapi/design-system';
import { CheckCircle, CrossCircle, WarningCircle } from '@strapi/icons';
import { Link } from 'react-router-dom';
import { useReason } from '../../components/disabled-reason';
import { useAbsoluteTime } from '../../components/time';
import { type TextKey, useText } from '../../utils/text';
import { useCause } from '../webhooks/causes';
import type { Need } from './needs';

const Sentence = ({ need }: { need: Need }) => {
  const text = useText();
  const cause = useCause();
  const absolute = useAbsoluteTime();
  const say = useReason();
  const { at, cause: why, off, values } = need;
  return (
    <Typography textColor="neutral800">
      {text(need.text, {
        ...values,
        at: at ? absolute(at) : '',
        cause: why ? cause.short(why) : '',
        reason: off ? say(off) : '',
      })}
    </Typography>
  );
};

interface NeedListProps {
  needs: readonly Need[];
  /** Shown where nothing is wrong. */
  well: TextKey;
  /** Not everything could be looked at: nothing is said to be well then. */
  isPartial?: boolean;
  /** At most so many, and how many more there are. */
  most?: number;
  /** Problems that are not among `needs`. */
  beyond?: number;
}

/** Problems, the most harmful first, each with its remedy. */
export const NeedList = ({
  needs,
  well,
  isPartial = false,
  most = needs.length,
  beyond = 0,
}: NeedListProps) => {
  const text = useText();
  const more = isPartial && (
    <Typography textColor="neutral600" role="status">
      {text('needs.partial')}
    </Typography>
  );
  if (needs.length === 0) {
    if (more) return more;
    return (
      <Flex gap={2} role="status">
        <CheckCircle fill="success600" aria-hidden />
        <Typography textColor="neutral800">{text(well)}</Typography>
      </Flex>
    );
  }
  return (
    <>
      {more}
      <Flex tag="ul" direction="column" alignItems="stretch" gap={3}>
        {needs.slice(0, most).map((need) => (
          <Flex tag="li" key={need.id} justifyContent="space-between" gap={3} wrap="wrap">
            <Flex gap={2} flex="1" minWidth="24rem" alignItems="start">
              <Box paddingTop={1} aria-hidden>
                {need.tone === 'danger' ? (
                  <CrossCircle fill="danger600" />
                ) : (
                  <WarningCircle fill="warning600" />
                )}
              </Box>
              <Sentence need={need} />
            </Flex>
            <Flex gap={2} wrap="wrap">
              {need.remedies.map(({ label, to }) => (
                <LinkButton
                  key={label}
                  tag={Link}
                  to={`/plugins/switchboard/${to}`}
                  size="S"
                  variant="tertiary"
                >
                  {text(label)}
                </LinkButton>
              ))}
            </Flex>
          </Flex>
        ))}
      </Flex>
      {needs.length + beyond > most && (
        <Typography variant="pi" textColor="neutral600">
          {text('needs.more', { n: needs.length + beyond - most })}
        </Typography>
      )}
    </>
  );
};
