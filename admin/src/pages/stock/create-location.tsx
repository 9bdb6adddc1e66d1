import { Plus } from '@strapi/icons';
import { useCreateLocation } from '../../services/stock';
import { useSaved } from '../../utils/errors';
import { useText } from '../../utils/text';
import { DialogForm } from './dialog-form';

export const CreateLocationButton = () => {
  const text = useText();
  const savedOr = useSaved();
  const [create] = useCreateLocation();
  return (
    <DialogForm
      label={text('stock.location.create')}
      icon={<Plus />}
      variant="tertiary"
      fields={[
        { name: 'name', label: text('stock.location.name'), required: true },
        { name: 'code', label: text('stock.location.code'), required: true },
      ]}
      onSubmit={async ({ name = '', code = '' }) => {
        const done = await create({ name: name.trim(), code: code.trim() });
        return savedOr(done, 'stock.location.created');
      }}
    />
  );
};
