import {
  Button,
  Combobox,
  ComboboxOption,
  DatePicker,
  Field,
  Flex,
  Typography,
} from '@strapi/design-system';
import { useState } from 'react';
import { SALES_GROUPS } from '../../../../shared/contracts/pos';
import { Filter } from '../../components/filter';
import { useAccess } from '../../permissions';
import { useConnections } from '../../services/pos';
import { type SalesFilter, useSoldItem } from '../../services/sales';
import { useStockGrid } from '../../services/stock';
import { useText } from '../../utils/text';
import { dayOf, pickerDate, PRESET_NAMES, rangeOf, type useDaysQuery } from './days-query';

type Change = ReturnType<typeof useDaysQuery>[1];

interface DayFieldProps {
  name: 'from' | 'to';
  value: string;
  onChange(day: string): void;
}

/** One day of the shop. It cannot be emptied: a report always has a first and a last day. */
const DayField = ({ name, value, onChange }: DayFieldProps) => {
  const text = useText();
  return (
    <Field.Root name={name}>
      <Field.Label>{text(`log.${name}`)}</Field.Label>
      <DatePicker
        size="S"
        value={pickerDate(value)}
        onChange={(date) => date && onChange(dayOf(date))}
      />
    </Field.Root>
  );
};

const ITEMS_OFFERED = 20;

interface ItemFilterProps {
  value: number | undefined;
  onChange(item: string | undefined): void;
}

/** One item, found by part of its SKU or name. */
const ItemFilter = ({ value, onChange }: ItemFilterProps) => {
  const text = useText();
  const [search, setSearch] = useState('');
  const items = useStockGrid({ search, perPage: ITEMS_OFFERED });
  const chosen = useSoldItem(value ?? 0, { skip: value === undefined });
  const found = items.data?.data ?? [];
  const known = value !== undefined && chosen.data && !found.some(({ id }) => id === value);
  const offered = known && chosen.data ? [chosen.data, ...found] : found;
  return (
    <Combobox
      size="S"
      aria-label={text('days.filter.item')}
      placeholder={text('days.filter.item')}
      value={value === undefined ? '' : String(value)}
      clearLabel={text('action.clear')}
      noOptionsMessage={() => text('table.noMatch')}
      loading={items.isFetching}
      loadingMessage={text('days.filter.loading')}
      // The server has looked already.
      autocomplete="none"
      onInputChange={(event) => setSearch(event.currentTarget.value.trim())}
      onClear={() => {
        setSearch('');
        onChange(undefined);
      }}
      onChange={(item) => item && onChange(String(item))}
    >
      {offered.map(({ id, sku, name }) => (
        <ComboboxOption key={id} value={String(id)} textValue={sku}>
          {name ? `${sku} · ${name}` : sku}
        </ComboboxOption>
      ))}
    </Combobox>
  );
};

const TillFilter = ({ value, onChange }: ItemFilterProps) => {
  const connections = useConnections();
  const options = (connections.data ?? []).map(({ id, name }) => [String(id), name] as const);
  const chosen = value === undefined ? undefined : String(value);
  const isOffered = !chosen || options.some(([id]) => id === chosen);
  return (
    <Filter
      label="event.filter.connection"
      value={chosen}
      options={isOffered ? options : [...options, [chosen, `#${chosen}`]]}
      onChange={onChange}
    />
  );
};

interface DaysFiltersProps {
  filter: SalesFilter;
  today: string;
  change: Change;
}

export const DaysFilters = ({ filter, today, change }: DaysFiltersProps) => {
  const text = useText();
  const { can } = useAccess();
  const { from, to, group, connection, item } = filter;
  return (
    <Flex direction="column" alignItems="start" gap={3}>
      <Flex gap={2} wrap="wrap" alignItems="end">
        {PRESET_NAMES.map((preset) => {
          const range = rangeOf(preset, today);
          const isShown = range.from === from && range.to === to;
          return (
            <Button
              key={preset}
              size="S"
              variant={isShown ? 'secondary' : 'tertiary'}
              aria-pressed={isShown}
              onClick={() => change(range)}
            >
              {text(`days.preset.${preset}`)}
            </Button>
          );
        })}
        <DayField name="from" value={from} onChange={(day) => change({ from: day, to })} />
        <DayField name="to" value={to} onChange={(day) => change({ from, to: day })} />
        {can('connections.read') && (
          <TillFilter value={connection} onChange={(id) => change({ connection: id })} />
        )}
        {can('stock.read') && <ItemFilter value={item} onChange={(id) => change({ item: id })} />}
      </Flex>
      <Flex gap={2} wrap="wrap" role="group" aria-label={text('days.group')}>
        <Typography variant="pi" textColor="neutral600">
          {text('days.group')}
        </Typography>
        {SALES_GROUPS.map((one) => (
          <Button
            key={one}
            size="S"
            variant={one === group ? 'secondary' : 'tertiary'}
            aria-pressed={one === group}
            onClick={() => change({ group: one })}
          >
            {text(`days.group.${one}`)}
          </Button>
        ))}
      </Flex>
    </Flex>
  );
};
