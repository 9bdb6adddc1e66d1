import {
  Button,
  Field,
  Flex,
  IconButton,
  SingleSelect,
  SingleSelectOption,
  TextInput,
  Typography,
} from '@strapi/design-system';
import { Plus, Trash } from '@strapi/icons';
import { useAccess } from '../../permissions';
import { useLocations } from '../../services/stock';
import { useText } from '../../utils/text';

export interface MappedLocation {
  ref: string;
  /** Null until the user has chosen: the shelf that a till sells from must not be guessed. */
  location: number | null;
}

interface LocationMapProps {
  value: readonly MappedLocation[];
  error?: string;
  disabled?: boolean;
  onChange(value: MappedLocation[]): void;
}

/** Maps a till's names of locations to the site's own. */
export const LocationMap = ({ value, error, disabled, onChange }: LocationMapProps) => {
  const text = useText();
  const { can } = useAccess();
  const mayList = can('stock.read');
  const { data: locations = [] } = useLocations(undefined, { skip: !mayList });
  const change = (index: number, part: Partial<MappedLocation>): void =>
    onChange(value.map((row, at) => (at === index ? { ...row, ...part } : row)));
  return (
    <Field.Root name="locations" error={error} hint={text('connection.locations.hint')}>
      <Typography variant="pi" fontWeight="bold" tag="h3">
        {text('connection.locations')}
      </Typography>
      {value.map((row, index) => (
        // Rows have no id, and are only changed here.
        <Flex key={index} gap={2} alignItems="end">
          <Field.Root name={`ref-${index}`} required flex="1">
            <Field.Label>{text('connection.locations.ref')}</Field.Label>
            <TextInput
              value={row.ref}
              maxLength={128}
              disabled={disabled}
              onChange={(event) => change(index, { ref: event.currentTarget.value })}
            />
          </Field.Root>
          <Field.Root name={`location-${index}`} required flex="1">
            <Field.Label>{text('connection.location')}</Field.Label>
            <SingleSelect
              value={row.location === null ? '' : String(row.location)}
              placeholder={text('connection.location.choose')}
              disabled={disabled || !mayList}
              onChange={(id) => change(index, { location: Number(id) })}
            >
              {locations.map(({ id, name, code }) => (
                <SingleSelectOption key={id} value={String(id)}>
                  {`${name} (${code})`}
                </SingleSelectOption>
              ))}
            </SingleSelect>
          </Field.Root>
          <IconButton
            label={text('connection.locations.remove')}
            variant="ghost"
            disabled={disabled}
            onClick={() => onChange(value.filter((_row, at) => at !== index))}
          >
            <Trash />
          </IconButton>
        </Flex>
      ))}
      {!disabled && !mayList && <Typography>{text('connection.locations.hidden')}</Typography>}
      {!disabled && mayList && (
        <Flex>
          <Button
            variant="tertiary"
            startIcon={<Plus />}
            onClick={() => onChange([...value, { ref: '', location: null }])}
          >
            {text('connection.locations.add')}
          </Button>
        </Flex>
      )}
      <Field.Hint />
      <Field.Error />
    </Field.Root>
  );
};
