import { Bell } from '@strapi/icons';
import { useSetLowMark } from '../../services/stock-by-hand';
import { useSaved } from '../../utils/errors';
import { useText } from '../../utils/text';
import { DialogForm } from './dialog-form';

interface LowMarkProps {
  level: { id: number; low_at: number | null; location: { name: string } };
  compact?: boolean;
}

/** A location's own low mark; empty, it goes by its item's again. */
export const LowMark = ({ level, compact }: LowMarkProps) => {
  const text = useText();
  const savedOr = useSaved();
  const [set] = useSetLowMark();
  return (
    <DialogForm
      label={
        compact ? text('level.low.of', { location: level.location.name }) : text('level.low.set')
      }
      icon={<Bell />}
      variant="tertiary"
      compact={compact}
      initial={{ low_at: level.low_at === null ? '' : String(level.low_at) }}
      fields={[
        {
          name: 'low_at',
          label: text('stock.item.low'),
          hint: text('level.low.hint'),
          whole: true,
        },
      ]}
      onSubmit={async ({ low_at: low = '' }) => {
        const mark = low.trim() === '' ? null : Number(low);
        return savedOr(await set({ id: level.id, low_at: mark }), 'level.low.done');
      }}
    />
  );
};
