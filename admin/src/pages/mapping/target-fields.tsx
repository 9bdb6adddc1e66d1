import { Field, Flex, Radio, TextInput, Typography } from '@strapi/design-system';
import type { UnknownValue } from '../../../../shared/contracts/pos-mapping';
import { ItemSearch } from '../../components/item-search';
import { LocationSelect } from '../../components/location-select';
import { useAccess } from '../../permissions';
import type { Problems } from '../../utils/errors';
import { useText } from '../../utils/text';
import type { Draft } from './draft';

const MEANS = ['item', 'create', 'ignore'] as const;

interface FieldsProps {
  draft: Draft;
  problems: Problems;
  onChange(draft: Draft): void;
}

interface TypedProps {
  name: string;
  label: string;
  value: string;
  error?: string;
  required?: boolean;
  onChange(value: string): void;
}

const Typed = ({ name, label, value, error, required, onChange }: TypedProps) => (
  <Field.Root name={name} error={error} required={required}>
    <Field.Label>{label}</Field.Label>
    <TextInput value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)} />
    <Field.Error />
  </Field.Root>
);

/** Users who may not see the stock enter the item's SKU. */
const ExistingItem = ({ draft, problems, onChange }: FieldsProps) => {
  const text = useText();
  const { can } = useAccess();
  const error = problems['to.item'];
  if (!can('stock.read')) {
    return (
      <Typed
        name="mapping-item"
        label={text('stock.item.sku')}
        required
        value={draft.typed}
        error={error}
        onChange={(typed) => onChange({ ...draft, typed })}
      />
    );
  }
  return (
    <ItemSearch
      name="mapping-item"
      label={text('mapping.item')}
      required
      error={error}
      value={draft.item}
      onChange={(item) => onChange({ ...draft, item })}
    />
  );
};

const NewItem = ({ draft, problems, onChange }: FieldsProps) => {
  const text = useText();
  return (
    <>
      {(['sku', 'name', 'gtin'] as const).map((field) => (
        <Typed
          key={field}
          name={`mapping-${field}`}
          label={text(`stock.item.${field}`)}
          required={field === 'sku'}
          value={draft[field]}
          error={problems[`to.create.${field}`] ?? problems[field]}
          onChange={(value) => onChange({ ...draft, [field]: value })}
        />
      ))}
    </>
  );
};

const Place = ({ draft, problems, onChange }: FieldsProps) => {
  const text = useText();
  const { can } = useAccess();
  const error = problems['to.location'];
  if (!can('stock.read')) {
    return (
      <Typed
        name="mapping-location"
        label={text('stock.location.code')}
        required
        value={draft.typed}
        error={error}
        onChange={(typed) => onChange({ ...draft, typed })}
      />
    );
  }
  return (
    <LocationSelect
      name="mapping-location"
      label={text('stock.location')}
      error={error}
      value={draft.location}
      onChange={(location) => onChange({ ...draft, location })}
    />
  );
};

/** The choice of targets for an unknown value, and the fields of the chosen one. */
export const TargetFields = ({ kind, ...fields }: FieldsProps & Pick<UnknownValue, 'kind'>) => {
  const text = useText();
  const { draft, problems, onChange } = fields;
  if (kind === 'location_ref') return <Place {...fields} />;
  return (
    <Flex direction="column" alignItems="stretch" gap={4}>
      <Radio.Group
        aria-label={text('mapping.means')}
        value={draft.means ?? ''}
        onValueChange={(means) => onChange({ ...draft, means: means as Draft['means'] })}
      >
        {MEANS.map((means) => (
          <Radio.Item key={means} value={means}>
            {text(`mapping.means.${means}`)}
          </Radio.Item>
        ))}
      </Radio.Group>
      {draft.means === 'item' && <ExistingItem {...fields} />}
      {draft.means === 'create' && <NewItem {...fields} />}
      {problems.to && <Typography textColor="danger600">{problems.to}</Typography>}
    </Flex>
  );
};
