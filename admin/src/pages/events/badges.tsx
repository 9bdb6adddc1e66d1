import type { PosEventState } from '../../../../shared/contracts/pos';
import { Pill } from '../../components/pill';
import { useText } from '../../utils/text';

const VARIANTS = {
  pending: 'neutral',
  applied: 'success',
  partially_applied: 'warning',
  needs_mapping: 'warning',
  held: 'secondary',
  simulated: 'primary',
  failed: 'danger',
} as const satisfies Record<PosEventState, string>;

export const EVENT_STATES = Object.keys(VARIANTS) as PosEventState[];

export const EventStateBadge = ({ state }: { state: PosEventState }) => {
  const text = useText();
  return <Pill variant={VARIANTS[state]}>{text(`event.state.${state}`)}</Pill>;
};
