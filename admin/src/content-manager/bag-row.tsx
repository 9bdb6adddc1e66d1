import {
  Box,
  Field,
  Flex,
  IconButton,
  NumberInput,
  SingleSelect,
  SingleSelectOption,
  TextInput,
} from '@strapi/design-system';
import { Trash } from '@strapi/icons';
import { useText } from '../utils/text';
import { retyped, ROW_TYPES, type RowType, type ValueRow } from './value-rows';

interface CellProps {
  row: ValueRow;
  disabled?: boolean;
  onChange(row: ValueRow): void;
}

const ValueInput = ({ row, disabled, onChange }: CellProps) => {
  const text = useText();
  const { type, value } = row;
  const change = (next: unknown) => onChange({ ...row, value: next });
  if (type === 'number') {
    return (
      <NumberInput
        value={typeof value === 'number' ? value : undefined}
        disabled={disabled}
        onValueChange={(number) => change(number ?? null)}
      />
    );
  }
  if (type === 'boolean') {
    return (
      <SingleSelect
        value={String(value)}
        disabled={disabled}
        onChange={(chosen) => change(chosen === 'true')}
      >
        <SingleSelectOption value="true">{text('bag.yes')}</SingleSelectOption>
        <SingleSelectOption value="false">{text('bag.no')}</SingleSelectOption>
      </SingleSelect>
    );
  }
  const shown = type === 'other' ? JSON.stringify(value) : String(value ?? '');
  return (
    <TextInput
      value={shown}
      disabled={disabled || type === 'other'}
      onChange={(event) => change(event.currentTarget.value)}
    />
  );
};

const TypeSelect = ({ row, disabled, onChange }: CellProps) => {
  const text = useText();
  const isOther = row.type === 'other';
  return (
    <SingleSelect
      value={row.type}
      disabled={disabled || isOther}
      onChange={(type) => onChange(retyped(row, type as RowType))}
    >
      {[...ROW_TYPES, ...(isOther ? (['other'] as const) : [])].map((type) => (
        <SingleSelectOption key={type} value={type}>
          {text(`bag.type.${type}`)}
        </SingleSelectOption>
      ))}
    </SingleSelect>
  );
};

interface RowProps extends CellProps {
  /** Another row has its name. */
  repeated: boolean;
  onRemove(): void;
}

/** One value with its name and type. */
export const BagRow = ({ row, repeated, disabled, onChange, onRemove }: RowProps) => {
  const text = useText();
  const { key, name, type } = row;
  const cell = { row, disabled, onChange };
  return (
    <Flex tag="li" gap={2} alignItems="start" wrap="wrap">
      <Field.Root
        name={`bag-name-${key}`}
        error={repeated ? text('bag.twice') : undefined}
        flex="2"
        minWidth="14rem"
      >
        <Field.Label>{text('bag.name')}</Field.Label>
        <TextInput
          value={name}
          disabled={disabled}
          autoComplete="off"
          onChange={(event) => onChange({ ...row, name: event.currentTarget.value })}
        />
        <Field.Error />
      </Field.Root>
      <Field.Root name={`bag-type-${key}`} flex="1" minWidth="15rem">
        <Field.Label>{text('bag.type')}</Field.Label>
        <TypeSelect {...cell} />
      </Field.Root>
      <Field.Root
        name={`bag-value-${key}`}
        hint={type === 'other' ? text('bag.other') : undefined}
        flex="3"
        minWidth="14rem"
      >
        <Field.Label>{text('bag.value')}</Field.Label>
        <ValueInput {...cell} />
        <Field.Hint />
      </Field.Root>
      {!disabled && (
        <Box paddingTop={5}>
          <IconButton
            label={name.trim() === '' ? text('bag.remove') : text('bag.removeNamed', { name })}
            onClick={onRemove}
          >
            <Trash />
          </IconButton>
        </Box>
      )}
    </Flex>
  );
};
