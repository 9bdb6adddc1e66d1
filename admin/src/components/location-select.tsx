import { Field, SingleSelect, SingleSelectOption } from '@strapi/design-system';
import { useLocations } from '../services/stock';
import { useText } from '../utils/text';

interface LocationSelectProps {
  name: string;
  label: string;
  error?: string;
  disabled?: boolean;
  value: number | null;
  onChange(location: number): void;
}

/** One of the site's locations. Nothing is chosen beforehand. */
export const LocationSelect = ({
  name,
  label,
  error,
  disabled,
  value,
  onChange,
}: LocationSelectProps) => {
  const text = useText();
  const { data: locations = [] } = useLocations();
  return (
    <Field.Root name={name} error={error} required>
      <Field.Label>{label}</Field.Label>
      <SingleSelect
        value={value === null ? '' : String(value)}
        placeholder={text('connection.location.choose')}
        disabled={disabled}
        onChange={(chosen) => onChange(Number(chosen))}
      >
        {locations.map(({ id, name: place }) => (
          <SingleSelectOption key={id} value={String(id)}>
            {place}
          </SingleSelectOption>
        ))}
      </SingleSelect>
      <Field.Error />
    </Field.Root>
  );
};
