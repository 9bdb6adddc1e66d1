import { Field, IconButton, TextInput, Typography } from '@strapi/design-system';
import { Trash } from '@strapi/icons';
import { useEffect, useState } from 'react';
import { type Column, DataTable } from '../../components/data-table';
import { ItemSearch } from '../../components/item-search';
import { useText } from '../../utils/text';
import { type Line, withItems } from './lines';

interface LineEditorProps {
  label: string;
  quantityLabel: string;
  lines: readonly Line[];
  /** The problem of each line. */
  problems: readonly (string | undefined)[];
  onChange(lines: Line[]): void;
}

const fieldOf = (item: number): string => `line-${item}`;

/** Items with a quantity each; an item is found by a search and then stands in the list. */
export const LineEditor = ({
  label,
  quantityLabel,
  lines,
  problems,
  onChange,
}: LineEditorProps) => {
  const text = useText();
  const [chosen, setChosen] = useState({ item: 0, times: 0 });
  useEffect(() => document.getElementsByName(fieldOf(chosen.item))[0]?.focus(), [chosen]);
  const rows = lines.map((line, index) => ({ ...line, index }));
  const columns: Column<Line & { index: number }>[] = [
    {
      id: 'item',
      label: text('line.item'),
      cell: ({ item }) => (
        <>
          <Typography fontWeight="bold">{item.sku}</Typography>
          {item.name && <Typography textColor="neutral600">{` ${item.name}`}</Typography>}
        </>
      ),
    },
    {
      id: 'quantity',
      label: quantityLabel,
      cell: ({ item, quantity, index }) => (
        <Field.Root name={fieldOf(item.id)} error={problems[index]}>
          <TextInput
            aria-label={text('line.quantity', { what: quantityLabel, sku: item.sku })}
            inputMode="numeric"
            value={quantity}
            onChange={({ currentTarget: { value } }) =>
              onChange(
                lines.map((line, at) => (at === index ? { ...line, quantity: value } : line))
              )
            }
          />
          <Field.Error />
        </Field.Root>
      ),
    },
    {
      id: 'remove',
      label: text('table.actions'),
      hiddenLabel: true,
      cell: ({ item, index }) => (
        <IconButton
          label={text('line.remove', { sku: item.sku })}
          variant="ghost"
          onClick={() => onChange(lines.filter((_line, at) => at !== index))}
        >
          <Trash />
        </IconButton>
      ),
    },
  ];
  return (
    <>
      <ItemSearch
        // Empty again for the next one, whose quantity is entered first.
        key={chosen.times}
        name="line-search"
        label={text('line.add')}
        value={null}
        onChange={(item) => {
          if (!item) return;
          onChange(withItems(lines, [item]));
          setChosen(({ times }) => ({ item: item.id, times: times + 1 }));
        }}
      />
      {rows.length === 0 ? (
        <Typography textColor="neutral600">{text('line.none')}</Typography>
      ) : (
        <DataTable
          label={label}
          columns={columns}
          rows={rows}
          rowId={({ item }) => item.id}
          empty={{ text: text('line.none') }}
        />
      )}
    </>
  );
};
