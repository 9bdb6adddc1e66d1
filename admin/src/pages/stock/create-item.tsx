import { Plus } from '@strapi/icons';
import { useCreateItem } from '../../services/stock';
import { useSaved } from '../../utils/errors';
import { useText } from '../../utils/text';
import { DialogForm } from './dialog-form';

export const CreateItemButton = () => {
  const text = useText();
  const savedOr = useSaved();
  const [create] = useCreateItem();
  return (
    <DialogForm
      label={text('stock.item.create')}
      icon={<Plus />}
      fields={[
        { name: 'sku', label: text('stock.item.sku'), required: true },
        { name: 'name', label: text('stock.item.name') },
        { name: 'gtin', label: text('stock.item.gtin') },
        {
          name: 'opening',
          label: text('stock.item.opening'),
          hint: text('stock.item.opening.hint'),
          whole: true,
        },
        {
          name: 'low_at',
          label: text('stock.item.low'),
          hint: text('stock.item.low.hint'),
          whole: true,
        },
      ]}
      onSubmit={async ({ sku = '', name, gtin, opening, low_at: low }) => {
        const done = await create({
          sku: sku.trim(),
          name: name?.trim() || null,
          gtin: gtin?.trim() || null,
          // Without a quantity too, so that the new item has a level to be seen.
          opening: [{ quantity: Number(opening || 0) }],
          ...(low && { low_at: Number(low) }),
        });
        return savedOr(done, 'stock.item.created');
      }}
    />
  );
};
