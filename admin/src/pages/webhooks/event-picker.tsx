import {
  Box,
  Checkbox,
  Field,
  Flex,
  Grid,
  Radio,
  Searchbar,
  Typography,
} from '@strapi/design-system';
import { useState } from 'react';
import type { EventSummary } from '../../../../shared/contracts/webhooks';
import { Loaded } from '../../components/page-states';
import { useEventNames } from '../../services/webhooks';
import { useText } from '../../utils/text';
import { useEventText } from './event-text';

/** Events by group, in the catalogue's order; those that match the search. */
export const groupEvents = (
  events: readonly EventSummary[],
  search: string,
  nameOf: (event: EventSummary) => string = ({ label }) => label
): Map<string, EventSummary[]> => {
  const wanted = search.trim().toLowerCase();
  const groups = new Map<string, EventSummary[]>();
  for (const one of events) {
    const words = [one.event, one.label, nameOf(one), one.group, one.description ?? '']
      .join(' ')
      .toLowerCase();
    if (words.includes(wanted)) groups.set(one.group, [...(groups.get(one.group) ?? []), one]);
  }
  return groups;
};

const toggle = (chosen: readonly string[], names: readonly string[], on: boolean): string[] => {
  const rest = chosen.filter((name) => !names.includes(name));
  return on ? [...rest, ...names] : rest;
};

interface EventPickerProps {
  chosen: readonly string[];
  error?: string;
  disabled?: boolean;
  onChange(events: string[]): void;
}

interface GroupProps extends EventPickerProps {
  name: string;
  events: readonly EventSummary[];
}

const Group = ({ name, events, chosen, disabled, onChange }: GroupProps) => {
  const eventText = useEventText();
  const names = events.map(({ event }) => event);
  const count = names.filter((event) => chosen.includes(event)).length;
  const state = count === names.length || (count > 0 && ('indeterminate' as const));
  return (
    <Box tag="fieldset" borderColor="neutral200" hasRadius padding={4} margin={0}>
      <Flex tag="legend" padding={0}>
        <Checkbox
          checked={state}
          disabled={disabled}
          onCheckedChange={() => onChange(toggle(chosen, names, count < names.length))}
        >
          <Typography fontWeight="bold">{eventText.group(name)}</Typography>
        </Checkbox>
      </Flex>
      <Grid.Root gap={3} paddingTop={3}>
        {events.map(({ event, label, description }) => (
          <Grid.Item key={event} col={4} s={6} xs={12} direction="column" alignItems="start">
            <Checkbox
              checked={chosen.includes(event)}
              disabled={disabled}
              onCheckedChange={(on) => onChange(toggle(chosen, [event], on === true))}
              title={description ?? undefined}
            >
              <Flex direction="column" alignItems="start">
                <Typography>{eventText.label({ event, label })}</Typography>
                <Typography variant="pi" textColor="neutral600">
                  {event}
                </Typography>
              </Flex>
            </Checkbox>
          </Grid.Item>
        ))}
      </Grid.Root>
    </Box>
  );
};

/** The choice of events: every one and those added later, or some, by group and with a search. */
export const EventPicker = ({ chosen, error, disabled, onChange }: EventPickerProps) => {
  const text = useText();
  const eventText = useEventText();
  const catalogue = useEventNames();
  const [search, setSearch] = useState('');
  // Restores the selection when "every event" is switched off again.
  const [remembered, setRemembered] = useState<readonly string[]>([]);
  const every = chosen.includes('*');
  const picked = every ? remembered : chosen;

  return (
    <Field.Root name="events" error={error} required>
      <Flex direction="column" alignItems="stretch" gap={4} width="100%">
        <Radio.Group
          value={every ? 'every' : 'some'}
          disabled={disabled}
          aria-label={text('webhook.events')}
          onValueChange={(value) => {
            setRemembered(picked);
            onChange(value === 'every' ? ['*'] : [...picked]);
          }}
        >
          <Radio.Item value="every">{text('events.every')}</Radio.Item>
          <Radio.Item value="some">{text('events.some', { n: picked.length })}</Radio.Item>
        </Radio.Group>
        <Field.Error />
        {!every && (
          <Loaded query={catalogue}>
            {(events) => {
              const groups = groupEvents(events, search, eventText.label);
              const known = new Set(events.map(({ event }) => event));
              const away = picked.filter((name) => !known.has(name));
              return (
                <Flex direction="column" alignItems="stretch" gap={4}>
                  <Searchbar
                    name="events-search"
                    value={search}
                    onChange={(event) => setSearch(event.currentTarget.value)}
                    onClear={() => setSearch('')}
                    clearLabel={text('action.clear')}
                    placeholder={text('events.search')}
                  >
                    {text('events.search')}
                  </Searchbar>
                  {[...groups].map(([name, members]) => (
                    <Group
                      key={name}
                      name={name}
                      events={members}
                      chosen={picked}
                      disabled={disabled}
                      onChange={onChange}
                    />
                  ))}
                  {groups.size === 0 && (
                    <Typography textColor="neutral600">{text('table.noMatch')}</Typography>
                  )}
                  {away.length > 0 && (
                    <Typography textColor="neutral800">
                      {text('events.away', { names: away.join(', ') })}
                    </Typography>
                  )}
                </Flex>
              );
            }}
          </Loaded>
        )}
      </Flex>
    </Field.Root>
  );
};
