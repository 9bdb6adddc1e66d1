import {
  Button,
  Checkbox,
  Field,
  Flex,
  Grid,
  Radio,
  TextInput,
  Typography,
} from '@strapi/design-system';
import { Check } from '@strapi/icons';
import { type FormEvent, useState } from 'react';
import type { Connection, ConnectionMode, ConnectionScope } from '../../../../shared/contracts/pos';
import { Panel } from '../../components/definition-list';
import { useText } from '../../utils/text';
import { LocationMap, type MappedLocation } from './location-map';

const SCOPES: readonly ConnectionScope[] = ['sale:write', 'refund:write', 'inventory:write'];
const MODES: readonly ConnectionMode[] = ['test', 'live'];

export interface ConnectionValues {
  name: string;
  scopes: ConnectionScope[];
  mode: ConnectionMode;
  group: string | null;
  locations: MappedLocation[];
}

export const BLANK_CONNECTION: ConnectionValues = {
  name: '',
  scopes: [...SCOPES],
  mode: 'test',
  group: null,
  locations: [],
};

export const valuesOf = ({
  name,
  scopes,
  mode,
  group,
  locations,
}: Connection): ConnectionValues => ({
  name,
  scopes,
  mode,
  group,
  locations: locations.map(({ ref, location }) => ({ ref, location: location.id })),
});

interface ConnectionFormProps {
  initial: ConnectionValues;
  disabled?: boolean;
  /** A connection that exists changes its mode with a button that says what that means. */
  withMode?: boolean;
  submitLabel: string;
  onSave(values: ConnectionValues): Promise<Record<string, string>>;
}

export const ConnectionForm = ({
  initial,
  disabled,
  withMode,
  submitLabel,
  onSave,
}: ConnectionFormProps) => {
  const text = useText();
  const [values, setValues] = useState(initial);
  const [errors, setErrors] = useState<Record<string, string>>({});
  const [saving, setSaving] = useState(false);
  const set = (part: Partial<ConnectionValues>): void => setValues((now) => ({ ...now, ...part }));

  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    const problems: Record<string, string> = {};
    if (values.name.trim() === '') problems.name = text('form.required');
    if (values.scopes.length === 0) problems.scopes = text('form.scopes');
    if (values.locations.some(({ ref }) => ref.trim() === '')) {
      problems.locations = text('form.required');
    }
    setErrors(problems);
    if (Object.keys(problems).length > 0) return;
    setSaving(true);
    setErrors(await onSave({ ...values, name: values.name.trim(), group: values.group || null }));
    setSaving(false);
  };

  return (
    <form noValidate onSubmit={(event) => void submit(event)}>
      <Panel
        title={text('connection.details')}
        actions={
          !disabled && (
            <Button type="submit" startIcon={<Check />} loading={saving}>
              {submitLabel}
            </Button>
          )
        }
      >
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
                onChange={(event) => set({ name: event.currentTarget.value })}
              />
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
                onChange={(event) => set({ group: event.currentTarget.value })}
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
                    set({
                      scopes: SCOPES.filter((one) =>
                        one === scope ? on === true : values.scopes.includes(one)
                      ),
                    })
                  }
                >
                  {text(`connection.scope.${scope}`)}
                </Checkbox>
              ))}
              <Field.Hint />
              <Field.Error />
            </Field.Root>
          </Grid.Item>
          {withMode && (
            <Grid.Item col={6} xs={12} direction="column" alignItems="stretch">
              <Flex direction="column" alignItems="stretch" gap={2}>
                <Typography variant="pi" fontWeight="bold" tag="h3">
                  {text('connection.mode')}
                </Typography>
                <Radio.Group
                  aria-label={text('connection.mode')}
                  value={values.mode}
                  onValueChange={(mode) => set({ mode: mode as ConnectionMode })}
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
              onChange={(locations) => set({ locations })}
            />
          </Grid.Item>
        </Grid.Root>
      </Panel>
    </form>
  );
};
