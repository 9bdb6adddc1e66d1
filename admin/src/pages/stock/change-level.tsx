import { Radio, Typography } from '@strapi/design-system';
import { Pencil } from '@strapi/icons';
import { useEffect, useState } from 'react';
import type { AdjustInput, Level } from '../../../../shared/contracts/stock';
import { useAdjust } from '../../services/stock';
import { usePreviewChange } from '../../services/stock-by-hand';
import { useSaved } from '../../utils/errors';
import { keyFor, useText } from '../../utils/text';
import { isWhole } from '../../utils/whole';
import { DialogForm } from './dialog-form';

/** While somebody types, nothing is asked. */
const PAUSE_MS = 300;

const HOW = ['quantity', 'counted'] as const;

export type Changed = Pick<Level, 'item_id' | 'location'> & { sku?: string };

const useSettled = <T,>(value: T): T => {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
};

const changeOf = (how: string | undefined, entered: string): AdjustInput | null => {
  if (!isWhole(entered)) return null;
  const number = Number(entered);
  if (how === 'counted') return number < 0 ? null : { counted: number };
  return number === 0 ? null : { quantity: number };
};

/** "49 → 7", of the shelf as it is now. */
const Preview = ({ level, how, entered }: { level: Changed; how?: string; entered: string }) => {
  const text = useText();
  const settled = useSettled(entered);
  const change = changeOf(how, settled);
  const preview = usePreviewChange(
    { itemId: level.item_id, location: level.location.id, ...change },
    { skip: change === null }
  );
  const { data } = preview;
  const isCurrent = change !== null && settled === entered && !preview.isFetching && data;
  const why = isCurrent && data.reason ? keyFor('movement.reason', data.reason) : undefined;
  return (
    <Typography role="status" variant="delta" tag="p">
      {isCurrent && text('level.change.preview', { before: data.before, after: data.after })}
      {why && <Typography textColor="neutral800">{` ${text(why)}`}</Typography>}
    </Typography>
  );
};

/** Sets a level to what was counted, or changes it by so much; what comes of it is shown before. */
export const ChangeLevel = ({ level, compact }: { level: Changed; compact?: boolean }) => {
  const text = useText();
  const savedOr = useSaved();
  const [adjust] = useAdjust();
  const { sku, location } = level;
  return (
    <DialogForm
      label={
        compact ? text('level.adjust.of', { sku, location: location.name }) : text('level.adjust')
      }
      icon={<Pencil />}
      compact={compact}
      initial={{ how: 'quantity', quantity: '', counted: '', reason: '' }}
      before={({ how }, set) => (
        <Radio.Group
          aria-label={text('level.change.how')}
          value={how}
          onValueChange={(chosen) => set('how', chosen)}
        >
          {HOW.map((one) => (
            <Radio.Item key={one} value={one}>
              {text(`level.change.${one}`)}
            </Radio.Item>
          ))}
        </Radio.Group>
      )}
      fields={({ how }) => [
        how === 'counted'
          ? { name: 'counted', label: text('level.counted'), required: true, whole: true }
          : {
              name: 'quantity',
              label: text('level.adjust.quantity'),
              hint: text('level.adjust.quantity.hint'),
              required: true,
              whole: true,
            },
        {
          name: 'reason',
          label: text('level.adjust.reason'),
          hint: text('level.adjust.reason.hint'),
          required: how !== 'counted',
        },
      ]}
      after={(values) => (
        <Preview level={level} how={values.how} entered={values[values.how ?? ''] ?? ''} />
      )}
      onSubmit={async ({ how, quantity, counted, reason }) => {
        const done = await adjust({
          itemId: level.item_id,
          location: location.id,
          ...(how === 'counted' ? { counted: Number(counted) } : { quantity: Number(quantity) }),
          reason: reason?.trim() || undefined,
        });
        return savedOr(done, 'level.adjust.done');
      }}
    />
  );
};
