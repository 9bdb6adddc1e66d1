import {
  Button,
  Checkbox,
  Field,
  Flex,
  Grid,
  IconButton,
  NumberInput,
  TextInput,
  Typography,
} from '@strapi/design-system';
import { Plus, Trash } from '@strapi/icons';
import { useIntl } from 'react-intl';
import { type OpenHours, SILENCE_LIMITS, WEEKDAYS } from '../../../../shared/contracts/pos';
import type { Problems } from '../../utils/errors';
import { type Translate, useText } from '../../utils/text';

/** How often a till is expected and when; no hours: it is never silent. */
export interface SilenceValues {
  expected_every_minutes: number | null;
  open_hours: OpenHours[];
}

const TIME = /^([01]\d|2[0-3]):[0-5]\d$/;
const WORKING_HOURS: OpenHours = { days: [...WEEKDAYS.slice(0, 5)], from: '09:00', to: '18:00' };
/** A Monday; 2024 began with one. */
const MONDAY = Date.UTC(2024, 0, 1);
const DAY_MS = 86_400_000;

const isComplete = ({ days, from, to }: OpenHours): boolean =>
  days.length > 0 && TIME.test(from) && (TIME.test(to) || to === '24:00') && from !== to;

/** Problems found without the server. */
export const silenceProblems = (
  { expected_every_minutes: minutes, open_hours: hours }: SilenceValues,
  text: Translate
): Problems => {
  const most = SILENCE_LIMITS.minutes;
  const isOdd = minutes !== null && (!Number.isInteger(minutes) || minutes < 1 || minutes > most);
  return {
    ...(isOdd && { expected_every_minutes: text('form.minutes', { most }) }),
    ...(!hours.every(isComplete) && { open_hours: text('form.openHours') }),
  };
};

/** The days of the week by name, in the reader's language. */
const useDayNames = () => {
  const { formatDate } = useIntl();
  return (day: OpenHours['days'][number], weekday: 'short' | 'long' = 'short'): string =>
    formatDate(MONDAY + WEEKDAYS.indexOf(day) * DAY_MS, { weekday, timeZone: 'UTC' });
};

/** Hours as a sentence has them: `Mon, Tue 09:00–18:00`. */
export const useHoursText = () => {
  const nameOf = useDayNames();
  return (hours: readonly OpenHours[]): string =>
    hours
      .map(({ days, from, to }) => `${days.map((day) => nameOf(day)).join(', ')} ${from}–${to}`)
      .join('; ');
};

interface HoursProps {
  value: OpenHours;
  index: number;
  disabled?: boolean;
  onChange(value: OpenHours): void;
  onRemove(): void;
}

const Hours = ({ value, index, disabled, onChange, onRemove }: HoursProps) => {
  const text = useText();
  const nameOf = useDayNames();
  return (
    <Flex gap={4} wrap="wrap" alignItems="end">
      <Flex gap={3} wrap="wrap" role="group" aria-label={text('connection.openHours.days')}>
        {WEEKDAYS.map((day) => (
          <Checkbox
            key={day}
            aria-label={nameOf(day, 'long')}
            checked={value.days.includes(day)}
            disabled={disabled}
            onCheckedChange={(on) =>
              onChange({
                ...value,
                days: WEEKDAYS.filter((one) =>
                  one === day ? on === true : value.days.includes(one)
                ),
              })
            }
          >
            {nameOf(day)}
          </Checkbox>
        ))}
      </Flex>
      {(['from', 'to'] as const).map((end) => (
        <Field.Root key={end} name={`${end}-${index}`} required width="9rem">
          <Field.Label>{text(`connection.openHours.${end}`)}</Field.Label>
          <TextInput
            value={value[end]}
            maxLength={5}
            disabled={disabled}
            onChange={(event) => onChange({ ...value, [end]: event.currentTarget.value })}
          />
        </Field.Root>
      ))}
      <IconButton
        label={text('connection.openHours.remove')}
        variant="ghost"
        disabled={disabled}
        onClick={onRemove}
      >
        <Trash />
      </IconButton>
    </Flex>
  );
};

interface SilenceFieldsProps {
  values: SilenceValues;
  errors: Problems;
  disabled?: boolean;
  set<K extends keyof SilenceValues>(field: K, value: SilenceValues[K]): void;
}

/** When a till is expected, and how often. */
export const SilenceFields = ({ values, errors, disabled, set }: SilenceFieldsProps) => {
  const text = useText();
  const { open_hours: hours, expected_every_minutes: minutes } = values;
  return (
    <>
      <Grid.Item col={6} xs={12} direction="column" alignItems="stretch">
        <Field.Root
          name="expected_every_minutes"
          error={errors.expected_every_minutes}
          hint={text('connection.expected.hint')}
        >
          <Field.Label>{text('connection.expected')}</Field.Label>
          <NumberInput
            value={minutes ?? undefined}
            disabled={disabled}
            onValueChange={(value) => set('expected_every_minutes', value ?? null)}
          />
          <Field.Hint />
          <Field.Error />
        </Field.Root>
      </Grid.Item>
      <Grid.Item col={12} direction="column" alignItems="stretch">
        <Field.Root
          name="open_hours"
          error={errors.open_hours}
          hint={text('connection.openHours.hint')}
        >
          <Typography variant="pi" fontWeight="bold" tag="h3">
            {text('connection.openHours')}
          </Typography>
          {hours.map((one, index) => (
            // They have no id, and are only changed here.
            <Hours
              key={index}
              value={one}
              index={index}
              disabled={disabled}
              onChange={(value) =>
                set(
                  'open_hours',
                  hours.map((before, at) => (at === index ? value : before))
                )
              }
              onRemove={() =>
                set(
                  'open_hours',
                  hours.filter((_one, at) => at !== index)
                )
              }
            />
          ))}
          {!disabled && hours.length < SILENCE_LIMITS.openHours && (
            <Flex>
              <Button
                variant="tertiary"
                startIcon={<Plus />}
                onClick={() => set('open_hours', [...hours, WORKING_HOURS])}
              >
                {text('connection.openHours.add')}
              </Button>
            </Flex>
          )}
          <Field.Hint />
          <Field.Error />
        </Field.Root>
      </Grid.Item>
    </>
  );
};
