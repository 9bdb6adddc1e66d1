import { SingleSelect, SingleSelectOption } from '@strapi/design-system';
import { type TextKey, useText } from '../utils/text';

interface FilterProps {
  label: TextKey;
  value: string | undefined;
  options: readonly (readonly [value: string, label: string])[];
  onChange(value: string | undefined): void;
}

/** One choice that narrows a list; nothing is chosen where `value` is empty. */
export const Filter = ({ label, value, options, onChange }: FilterProps) => {
  const text = useText();
  return (
    <SingleSelect
      size="S"
      aria-label={text(label)}
      placeholder={text(label)}
      value={value ?? ''}
      clearLabel={text('action.clear')}
      onClear={() => onChange(undefined)}
      onChange={(chosen) => onChange(String(chosen))}
    >
      {options.map(([id, name]) => (
        <SingleSelectOption key={id} value={id}>
          {name}
        </SingleSelectOption>
      ))}
    </SingleSelect>
  );
};
