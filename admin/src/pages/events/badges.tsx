import { Flex } from '@strapi/design-system';
import type { PosEvent, PosEventState } from '../../../../shared/contracts/pos';
import { Pill } from '../../components/pill';
import { useText } from '../../utils/text';
import { needsAttention } from './states';

const VARIANTS = {
  pending: 'neutral',
  applied: 'success',
  partially_applied: 'warning',
  needs_mapping: 'warning',
  held: 'secondary',
  simulated: 'primary',
  failed: 'danger',
  matched: 'success',
  differs: 'warning',
} as const satisfies Record<PosEventState, string>;

export const EVENT_STATES = Object.keys(VARIANTS) as PosEventState[];

/** The state of a record. One of test mode that would wait says so: its state alone looks well. */
export const EventStateBadge = ({ event }: { event: Pick<PosEvent, 'state' | 'waiting'> }) => {
  const text = useText();
  const { state } = event;
  return (
    <Flex gap={1} wrap="wrap">
      <Pill variant={VARIANTS[state]}>{text(`event.state.${state}`)}</Pill>
      {state === 'simulated' && needsAttention(event) && (
        <Pill variant="warning">{text('event.attention')}</Pill>
      )}
    </Flex>
  );
};
