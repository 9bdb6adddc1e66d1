import { Button, Field, Flex, Grid, TextInput, Typography } from '@strapi/design-system';
import { Plus } from '@strapi/icons';
import { type ReactNode, useId, useState } from 'react';
import { type TextKey, useText } from '../utils/text';
import { BagRow } from './bag-row';
import {
  type Bag,
  bagOf,
  isRepeated,
  newRow,
  rowsOf,
  sameBag,
  type ValueRow,
  valuesOf,
} from './value-rows';

/** The Content Manager's props for the input of a custom field. */
export interface CustomInputProps {
  name: string;
  label?: ReactNode;
  hint?: ReactNode;
  error?: string;
  required?: boolean;
  disabled?: boolean;
  value?: unknown;
  onChange(name: string, value: unknown): void;
}

/** A value with an input of its own. */
export interface Part {
  name: string;
  label: TextKey;
  /** How many of the twelve columns it takes. */
  columns: number;
}

interface PartsProps {
  parts: readonly Part[];
  values: Bag;
  disabled?: boolean;
  onChange(values: Bag): void;
}

const Parts = ({ parts, values, disabled, onChange }: PartsProps) => {
  const text = useText();
  const change = (name: string, value: string): void => {
    const { [name]: _before, ...rest } = values;
    onChange(value === '' ? rest : { ...values, [name]: value });
  };
  return (
    <Grid.Root gap={4}>
      {parts.map(({ name, label, columns }) => (
        <Grid.Item key={name} col={columns} xs={12} direction="column" alignItems="stretch">
          <Field.Root name={`bag-part-${name}`}>
            <Field.Label>{text(label)}</Field.Label>
            <TextInput
              value={String(values[name] ?? '')}
              disabled={disabled}
              autoComplete="off"
              onChange={(event) => change(name, event.currentTarget.value)}
            />
          </Field.Root>
        </Grid.Item>
      ))}
    </Grid.Root>
  );
};

/** The rows of an object, and how they are changed; rows without a name yet are nowhere else. */
const useRows = (bag: Bag, onChange: (values: Bag) => void) => {
  const [edited, setEdited] = useState({ rows: rowsOf(bag), bag });
  // Changed from outside, such as by saving or discarding.
  if (!sameBag(edited.bag, bag)) setEdited({ rows: rowsOf(bag), bag });
  const { rows } = edited;
  const change = (next: ValueRow[]): void => {
    const values = valuesOf(next);
    setEdited({ rows: next, bag: values });
    onChange(values);
  };
  return {
    rows,
    add: () => setEdited({ ...edited, rows: [...rows, newRow()] }),
    replace: (row: ValueRow) => change(rows.map((one) => (one.key === row.key ? row : one))),
    remove: (row: ValueRow) => change(rows.filter((one) => one.key !== row.key)),
  };
};

const isPlain = (value: unknown): boolean =>
  value === undefined || value === null || ['string', 'number'].includes(typeof value);

interface BagInputProps extends CustomInputProps {
  parts?: readonly Part[];
  add: TextKey;
  none?: TextKey;
}

/** Inputs for the parts that have one of their own, and a row for each other value. */
const Values = ({
  bag,
  name,
  disabled,
  onChange,
  parts = [],
  add,
  none,
}: BagInputProps & { bag: Bag }) => {
  const text = useText();
  const shown = parts.filter((part) => isPlain(bag[part.name]));
  const isPart = (key: string): boolean => shown.some((part) => part.name === key);
  const own = Object.fromEntries(Object.entries(bag).filter(([key]) => isPart(key)));
  const others = Object.fromEntries(Object.entries(bag).filter(([key]) => !isPart(key)));
  const change = (values: Bag): void =>
    onChange(name, Object.keys(values).length === 0 ? null : values);
  const rows = useRows(others, (values) => change({ ...values, ...own }));
  return (
    <>
      {shown.length > 0 && (
        <Parts
          parts={shown}
          values={own}
          disabled={disabled}
          onChange={(values) => change({ ...values, ...others })}
        />
      )}
      {rows.rows.length > 0 && (
        <Flex tag="ul" direction="column" alignItems="stretch" gap={3}>
          {rows.rows.map((row) => (
            <BagRow
              key={row.key}
              row={row}
              repeated={isRepeated(rows.rows, row)}
              disabled={disabled}
              onChange={rows.replace}
              onRemove={() => rows.remove(row)}
            />
          ))}
        </Flex>
      )}
      {none && rows.rows.length === 0 && (
        <Typography variant="pi" textColor="neutral600">
          {text(none)}
        </Typography>
      )}
      {!disabled && (
        <Flex>
          <Button variant="tertiary" startIcon={<Plus />} onClick={rows.add}>
            {text(add)}
          </Button>
        </Flex>
      )}
    </>
  );
};

/** The input of an object: named values in place of JSON. A value of another shape is only shown. */
export const BagInput = (props: BagInputProps) => {
  const text = useText();
  const id = useId();
  const { name, label, hint, error, required, value } = props;
  const bag = bagOf(value);
  return (
    <Field.Root name={name} error={error} hint={bag ? hint : text('bag.other')} required={required}>
      <Flex
        role="group"
        aria-labelledby={id}
        direction="column"
        alignItems="stretch"
        gap={4}
        width="100%"
        padding={4}
        hasRadius
        borderColor={error ? 'danger600' : 'neutral200'}
      >
        <Typography id={id} tag="span" variant="pi" fontWeight="bold">
          {label ?? name}
        </Typography>
        {bag ? <Values {...props} bag={bag} /> : <Typography>{JSON.stringify(value)}</Typography>}
      </Flex>
      <Field.Hint />
      <Field.Error />
    </Field.Root>
  );
};
