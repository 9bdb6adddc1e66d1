import { Button, Field, Grid, TextInput } from '@strapi/design-system';
import { Check } from '@strapi/icons';
import type { Item } from '../../../../shared/contracts/stock';
import { EditForm } from '../../components/edit-form';
import { InHeader } from '../../components/form-page';
import { Panel } from '../../components/panel';
import { useUpdateItem } from '../../services/stock-by-hand';
import { type Problems, useSaved } from '../../utils/errors';
import { useText } from '../../utils/text';
import { isWhole } from '../../utils/whole';

interface ItemValues {
  sku: string;
  name: string;
  gtin: string;
  low_at: string;
}

const FIELDS = ['sku', 'name', 'gtin', 'low_at'] as const;

/** An item's names, and its low mark. */
export const ItemForm = ({ item, disabled }: { item: Item; disabled: boolean }) => {
  const text = useText();
  const savedOr = useSaved();
  const [update] = useUpdateItem();
  const problemsOf = ({ sku, low_at: low }: ItemValues): Problems => ({
    ...(sku.trim() === '' && { sku: text('form.required') }),
    ...(!isWhole(low) && { low_at: text('form.whole') }),
  });
  return (
    <EditForm<ItemValues>
      initial={{
        sku: item.sku,
        name: item.name ?? '',
        gtin: item.gtin ?? '',
        low_at: String(item.low_at),
      }}
      problemsOf={problemsOf}
      onSave={async (_values, { sku, name, gtin, low_at: low }) => {
        const done = await update({
          id: item.id,
          ...(sku !== undefined && { sku: sku.trim() }),
          ...(name !== undefined && { name: name.trim() || null }),
          ...(gtin !== undefined && { gtin: gtin.trim() || null }),
          ...(low !== undefined && { low_at: Number(low) }),
        });
        return savedOr(done, 'item.saved');
      }}
    >
      {({ values, errors, saving, modified, submit, set }) => (
        <Panel title={text('item.details')}>
          {!disabled && (
            <InHeader>
              <Button startIcon={<Check />} loading={saving} disabled={!modified} onClick={submit}>
                {text('action.save')}
              </Button>
            </InHeader>
          )}
          <Grid.Root gap={4}>
            {FIELDS.map((field) => (
              <Grid.Item key={field} col={6} xs={12} direction="column" alignItems="stretch">
                <Field.Root
                  name={field}
                  error={errors[field]}
                  required={field === 'sku'}
                  hint={field === 'low_at' ? text('stock.item.low.hint') : undefined}
                >
                  <Field.Label>
                    {text(field === 'low_at' ? 'stock.item.low' : `stock.item.${field}`)}
                  </Field.Label>
                  <TextInput
                    value={values[field]}
                    readOnly={disabled}
                    onChange={({ currentTarget }) => set(field, currentTarget.value)}
                  />
                  <Field.Hint />
                  <Field.Error />
                </Field.Root>
              </Grid.Item>
            ))}
          </Grid.Root>
        </Panel>
      )}
    </EditForm>
  );
};
