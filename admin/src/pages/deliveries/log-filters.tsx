import {
  Button,
  Combobox,
  ComboboxOption,
  Flex,
  Searchbar,
  SearchForm,
  Tag,
} from '@strapi/design-system';
import { Cross } from '@strapi/icons';
import { useEffect, useState } from 'react';
import { DELIVERY_STATES } from '../../../../shared/contracts/webhooks';
import { Filter } from '../../components/filter';
import { TimeField } from '../../components/time-field';
import { useEventNames, useWebhook, useWebhookPage } from '../../services/webhooks';
import { keyFor, useText } from '../../utils/text';
import { useAbsoluteTime } from '../../components/time';
import { useCause } from '../webhooks/causes';
import { FILTER_KEYS, type FilterKey } from './log-filter';
import type { LogQuery } from './log-query';

/** The most likely filter. */
export const FAILED_STATES = 'failing,failed';
const WEBHOOKS_OFFERED = 20;

const TextSearch = ({ log }: { log: LogQuery }) => {
  const text = useText();
  const wanted = log.value('q') ?? '';
  const [typed, setTyped] = useState(wanted);
  useEffect(() => setTyped(wanted), [wanted]);
  return (
    <SearchForm
      onSubmit={(event) => {
        event.preventDefault();
        log.narrow({ q: typed.trim() || undefined });
      }}
    >
      <Searchbar
        name="search"
        size="S"
        value={typed}
        clearLabel={text('action.clear')}
        placeholder={text('log.search.hint')}
        onClear={() => log.narrow({ q: undefined })}
        onChange={(event) => setTyped(event.currentTarget.value)}
      >
        {text('log.search')}
      </Searchbar>
    </SearchForm>
  );
};

/** Finds a webhook by a part of its name or address. */
const WebhookFilter = ({ log }: { log: LogQuery }) => {
  const text = useText();
  const [search, setSearch] = useState('');
  const filter = { q: search || undefined, sort: 'name:asc', perPage: WEBHOOKS_OFFERED };
  const { data, isFetching } = useWebhookPage(filter);
  const chosen = log.value('webhook');
  const known = useWebhook(Number(chosen), { skip: !chosen });
  const found = (data?.data ?? []).map(({ id, name }) => ({ id: String(id), name }));
  const isOffered = !chosen || found.some(({ id }) => id === chosen);
  const options = isOffered
    ? found
    : [{ id: chosen, name: known.currentData?.name ?? `#${chosen}` }, ...found];
  return (
    <Combobox
      size="S"
      aria-label={text('log.webhook')}
      placeholder={text('log.webhook')}
      autocomplete="none"
      clearLabel={text('action.clear')}
      loading={isFetching}
      loadingMessage={text('log.webhook.loading')}
      noOptionsMessage={() => text('log.webhook.none')}
      value={chosen ?? ''}
      onInputChange={({ currentTarget }: { currentTarget: HTMLInputElement }) =>
        setSearch(currentTarget.value.trim())
      }
      onChange={(id?: string) => log.narrow({ webhook: id || undefined })}
      onClear={() => {
        setSearch('');
        log.narrow({ webhook: undefined });
      }}
    >
      {options.map(({ id, name }) => (
        <ComboboxOption key={id} value={id} textValue={name}>
          {name}
        </ComboboxOption>
      ))}
    </Combobox>
  );
};

interface LogFiltersProps {
  log: LogQuery;
  /** Over all webhooks: one can be chosen. */
  overAll: boolean;
}

export const LogFilters = ({ log, overAll }: LogFiltersProps) => {
  const text = useText();
  const catalogue = useEventNames();
  const events = [...new Set(['ping', ...(catalogue.data ?? []).map(({ event }) => event)])];
  return (
    <Flex gap={2} wrap="wrap" alignItems="end">
      <TextSearch log={log} />
      {overAll && <WebhookFilter log={log} />}
      <Filter
        label="delivery.filter.status"
        value={log.value('state')}
        options={[
          [FAILED_STATES, text('delivery.state.failingOrFailed')],
          ...DELIVERY_STATES.map((state) => [state, text(`delivery.state.${state}`)] as const),
        ]}
        onChange={(state) => log.narrow({ state })}
      />
      <Filter
        label="delivery.filter.event"
        value={log.value('event')}
        options={events.map((event) => [event, event])}
        onChange={(event) => log.narrow({ event })}
      />
      {(['from', 'to'] as const).map((name) => (
        <TimeField
          key={name}
          name={name}
          label={text(`log.${name}`)}
          value={log.value(name)}
          onChange={(at) => log.narrow({ [name]: at })}
        />
      ))}
    </Flex>
  );
};

/** Filters that apply, also those that only a link sets; a click takes one away. */
export const FilterChips = ({ log }: { log: LogQuery }) => {
  const text = useText();
  const cause = useCause();
  const absolute = useAbsoluteTime();
  const webhook = log.value('webhook');
  const { currentData: owner } = useWebhook(Number(webhook), { skip: !webhook });
  if (!log.isFiltered) return null;
  const said = (key: FilterKey, value: string): string => {
    if (key === 'webhook') return owner?.name ?? `#${value}`;
    if (key === 'from' || key === 'to') return absolute(value);
    if (key === 'cause') return cause.short(value);
    if (key !== 'state') return value;
    return value
      .split(',')
      .map((state) => {
        const name = keyFor('delivery.state', state);
        return name ? text(name) : state;
      })
      .join(', ');
  };
  return (
    <Flex gap={2} wrap="wrap" role="group" aria-label={text('log.chips')}>
      {FILTER_KEYS.flatMap((key) => {
        const value = log.value(key);
        if (value === undefined) return [];
        const name = `${text(`log.chip.${key}`)}: ${said(key, value)}`;
        return (
          <Tag
            key={key}
            icon={<Cross aria-hidden />}
            label={text('log.chip.remove', { name })}
            onClick={() => log.narrow({ [key]: undefined })}
          >
            {name}
          </Tag>
        );
      })}
      <Button size="S" variant="ghost" startIcon={<Cross />} onClick={log.clear}>
        {text('log.clear')}
      </Button>
    </Flex>
  );
};
