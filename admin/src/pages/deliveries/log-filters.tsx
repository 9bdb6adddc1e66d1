import { Button, Field, Flex, Searchbar, SearchForm } from '@strapi/design-system';
import { Cross } from '@strapi/icons';
import { useEffect, useState } from 'react';
import { DELIVERY_STATES } from '../../../../shared/contracts/webhooks';
import { Filter } from '../../components/filter';
import { TimeInput } from '../../components/time-input';
import { useCatalogue, useWebhookPage } from '../../services/webhooks';
import { instantOf, localTime } from '../../utils/local-time';
import { useText } from '../../utils/text';
import type { LogQuery } from './log-query';

/** The most likely filter. */
export const FAILED_STATES = 'failing,failed';
const WEBHOOKS_OFFERED = 100;

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

interface TimeFieldProps {
  name: 'from' | 'to';
  log: LogQuery;
}

const TimeField = ({ name, log }: TimeFieldProps) => {
  const text = useText();
  return (
    <Field.Root name={name}>
      <Field.Label>{text(`log.${name}`)}</Field.Label>
      <TimeInput
        size="S"
        type="datetime-local"
        value={localTime(log.value(name))}
        onChange={(event) => log.narrow({ [name]: instantOf(event.currentTarget.value) })}
      />
    </Field.Root>
  );
};

const WebhookFilter = ({ log }: { log: LogQuery }) => {
  const webhooks = useWebhookPage({ sort: 'name:asc', perPage: WEBHOOKS_OFFERED });
  const options = (webhooks.data?.data ?? []).map(({ id, name }) => [String(id), name] as const);
  const chosen = log.value('webhook');
  const isOffered = !chosen || options.some(([id]) => id === chosen);
  return (
    <Filter
      label="log.webhook"
      value={chosen}
      options={isOffered ? options : [...options, [chosen, `#${chosen}`]]}
      onChange={(webhook) => log.narrow({ webhook })}
    />
  );
};

interface LogFiltersProps {
  log: LogQuery;
  /** Over all webhooks: one can be chosen. */
  overAll: boolean;
}

export const LogFilters = ({ log, overAll }: LogFiltersProps) => {
  const text = useText();
  const catalogue = useCatalogue();
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
      <TimeField name="from" log={log} />
      <TimeField name="to" log={log} />
      {log.isFiltered && (
        <Button size="S" variant="ghost" startIcon={<Cross />} onClick={log.clear}>
          {text('log.clear')}
        </Button>
      )}
    </Flex>
  );
};
