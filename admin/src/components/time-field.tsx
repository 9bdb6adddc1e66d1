import { DateTimePicker, Field } from '@strapi/design-system';
import { useText } from '../utils/text';

interface TimeFieldProps {
  name: string;
  label: string;
  hint?: string;
  error?: string;
  /** ISO 8601; undefined: none is chosen. */
  value: string | undefined;
  /** The latest that can be chosen. */
  latest?: Date;
  onChange(at: string | undefined): void;
}

/** A moment in the reader's own time, by the host's picker. */
export const TimeField = ({
  name,
  label,
  hint,
  error,
  value,
  latest,
  onChange,
}: TimeFieldProps) => {
  const text = useText();
  return (
    <Field.Root name={name} hint={hint} error={error} maxWidth="46rem">
      <Field.Label>{label}</Field.Label>
      <DateTimePicker
        size="S"
        dateLabel={text('time.date', { label })}
        timeLabel={text('time.time', { label })}
        clearLabel={text('action.clear')}
        maxDate={latest}
        value={value === undefined ? undefined : new Date(value)}
        onChange={(date) => onChange(date?.toISOString())}
        onClear={() => onChange(undefined)}
      />
      <Field.Hint />
      <Field.Error />
    </Field.Root>
  );
};
