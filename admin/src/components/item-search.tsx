import { Combobox, ComboboxOption, Field } from '@strapi/design-system';
import { useState } from 'react';
import type { Item } from '../../../shared/contracts/stock';
import { useItems } from '../services/stock-by-hand';
import type { ChosenItem } from '../utils/chosen-item';
import { useText } from '../utils/text';

const MOST = 20;

/** The text that is searched and shown: a search by barcode has to leave its item in the list. */
const labelOf = ({ sku, name, gtin }: Pick<Item, 'sku' | 'name'> & { gtin?: string | null }) =>
  [sku, name, gtin].filter(Boolean).join(' – ');

interface ItemSearchProps {
  name: string;
  label: string;
  hint?: string;
  error?: string;
  required?: boolean;
  value: ChosenItem | null;
  onChange(item: ChosenItem | null): void;
}

/** Finds an item by a part of its SKU, name or barcode. Nothing is chosen beforehand. */
export const ItemSearch = ({
  name,
  label,
  hint,
  error,
  required,
  value,
  onChange,
}: ItemSearchProps) => {
  const text = useText();
  const [typed, setTyped] = useState(value ? labelOf(value) : '');
  const [search, setSearch] = useState('');
  const { data, isFetching } = useItems({ search: search || undefined, perPage: MOST });
  const items = data?.data ?? [];
  return (
    <Field.Root name={name} hint={hint} error={error} required={required}>
      <Field.Label>{label}</Field.Label>
      <Combobox
        autocomplete={{ type: 'list', filter: 'contains' }}
        placeholder={text('item.search.placeholder')}
        clearLabel={text('action.clear')}
        loading={isFetching}
        loadingMessage={text('item.search.loading')}
        noOptionsMessage={() => text('item.search.none')}
        value={value ? String(value.id) : ''}
        textValue={typed}
        onTextValueChange={setTyped}
        onInputChange={({ currentTarget }: { currentTarget: HTMLInputElement }) =>
          setSearch(currentTarget.value.trim())
        }
        onChange={(id?: string) => {
          const found = items.find((item) => String(item.id) === id);
          if (found) onChange(found);
          else if (!id) onChange(null);
        }}
        onClear={() => {
          setSearch('');
          onChange(null);
        }}
      >
        {items.map((item) => (
          <ComboboxOption key={item.id} value={String(item.id)} textValue={labelOf(item)}>
            {labelOf(item)}
          </ComboboxOption>
        ))}
      </Combobox>
      <Field.Hint />
      <Field.Error />
    </Field.Root>
  );
};
