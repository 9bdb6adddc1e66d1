import {
  Button,
  Checkbox,
  Field,
  Flex,
  Grid,
  Radio,
  SingleSelect,
  SingleSelectOption,
  TextInput,
  Typography,
} from '@strapi/design-system';
import { Check } from '@strapi/icons';
import {
  type Connection,
  CONNECTION_TYPES,
  type ConnectionInput,
  type ConnectionMode,
  type ConnectionScope,
  type ConnectionType,
  CUSTOMER_RULES,
  type CustomerRule,
} from '../../../../shared/contracts/pos';
import { Panel } from '../../components/panel';
import { EditForm } from '../../components/edit-form';
import { InHeader } from '../../components/form-page';
import type { Problems, Saved } from '../../utils/errors';
import { type TextKey, type Translate, useText } from '../../utils/text';
import { LocationMap, type MappedLocation } from './location-map';
import { SilenceFields, silenceProblems, type SilenceValues } from './silence-fields';

const SCOPES: readonly ConnectionScope[] = [
  'sale:write',
  'refund:write',
  'inventory:write',
  'stock:read',
  'closing:write',
];
const MODES: readonly ConnectionMode[] = ['test', 'live'];

const TYPE_TEXTS: Record<ConnectionType, TextKey> = {
  'Generic webhook': 'connection.type.generic',
};
export const typeText = (type: ConnectionType): TextKey => TYPE_TEXTS[type];

/** The form's values; a location that was not chosen yet is null. */
export interface ConnectionValues extends SilenceValues {
  name: string;
  type: ConnectionType;
  scopes: ConnectionScope[];
  mode: ConnectionMode;
  group: string | null;
  customers: CustomerRule;
  country: string | null;
  locations: MappedLocation[];
}

/** The request: every location is chosen, and no hours are null. */
export type ConnectionChanges = Omit<ConnectionValues, 'locations' | 'open_hours'> &
  Required<Pick<ConnectionInput, 'locations' | 'open_hours'>>;

export const BLANK_CONNECTION: ConnectionValues = {
  name: '',
  type: CONNECTION_TYPES[0],
  scopes: [...SCOPES],
  mode: 'test',
  group: null,
  customers: 'match',
  country: null,
  locations: [],
  expected_every_minutes: null,
  open_hours: [],
};

export const valuesOf = ({
  name,
  type,
  scopes,
  mode,
  group,
  customers,
  country,
  locations,
  ...connection
}: Connection): ConnectionValues => ({
  name,
  type,
  scopes,
  mode,
  group,
  customers,
  country,
  locations: locations.map(({ ref, location }) => ({ ref, location: location.id })),
  expected_every_minutes: connection.expected_every_minutes,
  open_hours: connection.open_hours ?? [],
});

const problemsOf = (values: ConnectionValues, text: Translate): Problems => ({
  ...(values.name.trim() === '' && { name: text('form.required') }),
  ...(values.scopes.length === 0 && { scopes: text('form.scopes') }),
  ...(values.locations.some(({ ref, location }) => ref.trim() === '' || location === null) && {
    locations: text('form.locations'),
  }),
  ...silenceProblems(values, text),
});

const toSend = <V extends Partial<ConnectionValues>>({
  locations,
  open_hours: hours,
  ...rest
}: V) =>
  ({
    ...rest,
    ...(rest.name !== undefined && { name: rest.name.trim() }),
    ...(rest.group !== undefined && { group: rest.group || null }),
    ...(hours && { open_hours: hours.length > 0 ? hours : null }),
    ...(locations && {
      locations: locations.flatMap(({ ref, location }) =>
        location === null ? [] : [{ ref: ref.trim(), location }]
      ),
    }),
  }) as Partial<ConnectionChanges>;

interface ConnectionFormProps {
  initial: ConnectionValues;
  disabled?: boolean;
  /** A connection that exists changes its mode with a button that says what that means. */
  withMode?: boolean;
  submitLabel: string;
  onSave(values: ConnectionChanges, changed: Partial<ConnectionChanges>): Promise<Saved>;
}

export const ConnectionForm = ({
  initial,
  disabled,
  withMode,
  submitLabel,
  onSave,
}: ConnectionFormProps) => {
  const text = useText();
  return (
    <EditForm<ConnectionValues>
      initial={initial}
      problemsOf={(values) => problemsOf(values, text)}
      onSave={(values, changed) => onSave(toSend(values) as ConnectionChanges, toSend(changed))}
    >
      {({ values, errors, saving, modified, submit, set }) => (
        <Panel title={text('connection.details')}>
          {!disabled && (
            <InHeader>
              <Button
                startIcon={<Check />}
                loading={saving}
                disabled={!modified && !withMode}
                onClick={submit}
              >
                {submitLabel}
              </Button>
            </InHeader>
          )}
          <Grid.Root gap={6}>
            <Grid.Item col={6} xs={12} direction="column" alignItems="stretch">
              <Field.Root
                name="name"
                required
                error={errors.name}
                hint={text('connection.name.hint')}
              >
                <Field.Label>{text('connection.name')}</Field.Label>
                <TextInput
                  value={values.name}
                  maxLength={255}
                  disabled={disabled}
                  onChange={(event) => set('name', event.currentTarget.value)}
                />
                <Field.Hint />
                <Field.Error />
              </Field.Root>
            </Grid.Item>
            <Grid.Item col={6} xs={12} direction="column" alignItems="stretch">
              <Field.Root name="type" error={errors.type} hint={text('connection.type.hint')}>
                <Field.Label>{text('connection.type')}</Field.Label>
                <SingleSelect
                  value={values.type}
                  disabled={disabled}
                  onChange={(type) => set('type', type as ConnectionType)}
                >
                  {CONNECTION_TYPES.map((type) => (
                    <SingleSelectOption key={type} value={type}>
                      {text(typeText(type))}
                    </SingleSelectOption>
                  ))}
                </SingleSelect>
                <Field.Hint />
                <Field.Error />
              </Field.Root>
            </Grid.Item>
            <Grid.Item col={6} xs={12} direction="column" alignItems="stretch">
              <Field.Root name="group" error={errors.group} hint={text('connection.group.hint')}>
                <Field.Label>{text('connection.group')}</Field.Label>
                <TextInput
                  value={values.group ?? ''}
                  maxLength={128}
                  disabled={disabled}
                  onChange={(event) => set('group', event.currentTarget.value || null)}
                />
                <Field.Hint />
                <Field.Error />
              </Field.Root>
            </Grid.Item>
            <Grid.Item col={6} xs={12} direction="column" alignItems="stretch">
              <Field.Root name="scopes" error={errors.scopes} hint={text('connection.scopes.hint')}>
                <Typography variant="pi" fontWeight="bold" tag="h3">
                  {text('connection.scopes')}
                </Typography>
                {SCOPES.map((scope) => (
                  <Checkbox
                    key={scope}
                    checked={values.scopes.includes(scope)}
                    disabled={disabled}
                    onCheckedChange={(on) =>
                      set(
                        'scopes',
                        SCOPES.filter((one) =>
                          one === scope ? on === true : values.scopes.includes(one)
                        )
                      )
                    }
                  >
                    {text(`connection.scope.${scope}`)}
                  </Checkbox>
                ))}
                <Field.Hint />
                <Field.Error />
              </Field.Root>
            </Grid.Item>
            <Grid.Item col={6} xs={12} direction="column" alignItems="stretch">
              <Field.Root
                name="customers"
                error={errors.customers}
                hint={text('connection.customers.hint')}
              >
                <Field.Label>{text('connection.customers')}</Field.Label>
                <SingleSelect
                  value={values.customers}
                  disabled={disabled}
                  onChange={(rule) => set('customers', rule as CustomerRule)}
                >
                  {CUSTOMER_RULES.map((rule) => (
                    <SingleSelectOption key={rule} value={rule}>
                      {text(`connection.customers.${rule}`)}
                    </SingleSelectOption>
                  ))}
                </SingleSelect>
                <Field.Hint />
                <Field.Error />
              </Field.Root>
            </Grid.Item>
            <Grid.Item col={6} xs={12} direction="column" alignItems="stretch">
              <Field.Root
                name="country"
                error={errors.country}
                hint={text('connection.country.hint')}
              >
                <Field.Label>{text('connection.country')}</Field.Label>
                <TextInput
                  value={values.country ?? ''}
                  maxLength={2}
                  disabled={disabled || values.customers === 'ignore'}
                  onChange={(event) =>
                    set('country', event.currentTarget.value.toUpperCase() || null)
                  }
                />
                <Field.Hint />
                <Field.Error />
              </Field.Root>
            </Grid.Item>
            {withMode && (
              <Grid.Item col={12} direction="column" alignItems="stretch">
                <Flex direction="column" alignItems="stretch" gap={2}>
                  <Typography variant="pi" fontWeight="bold" tag="h3">
                    {text('connection.mode')}
                  </Typography>
                  <Radio.Group
                    aria-label={text('connection.mode')}
                    value={values.mode}
                    onValueChange={(mode) => set('mode', mode as ConnectionMode)}
                  >
                    {MODES.map((mode) => (
                      <Radio.Item key={mode} value={mode}>
                        {`${text(`connection.mode.${mode}`)} – ${text(`connection.mode.${mode}.hint`)}`}
                      </Radio.Item>
                    ))}
                  </Radio.Group>
                </Flex>
              </Grid.Item>
            )}
            <Grid.Item col={12} direction="column" alignItems="stretch">
              <LocationMap
                value={values.locations}
                error={errors.locations}
                disabled={disabled}
                onChange={(locations) => set('locations', locations)}
              />
            </Grid.Item>
            <SilenceFields values={values} errors={errors} disabled={disabled} set={set} />
          </Grid.Root>
        </Panel>
      )}
    </EditForm>
  );
};
