import { Pill } from '../../components/pill';
import { useText } from '../../utils/text';

/** A quantity's problem in a word: "below zero" wins over "low". */
export const LevelMark = ({ level }: { level: { quantity: number; low: boolean } }) => {
  const text = useText();
  if (level.quantity < 0) return <Pill variant="danger">{text('stock.mark.negative')}</Pill>;
  if (level.low) return <Pill variant="warning">{text('stock.mark.low')}</Pill>;
  return null;
};
