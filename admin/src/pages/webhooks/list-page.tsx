import { LinkButton } from '@strapi/design-system';
import { Plus, Trash } from '@strapi/icons';
import { Layouts, Page, SearchInput, useQueryParams } from '@strapi/strapi/admin';
import { Link, useNavigate } from 'react-router-dom';
import type { WebhookSummary } from '../../../../shared/contracts/webhooks';
import { ConfirmButton } from '../../components/confirm-button';
import { Cut } from '../../components/cut';
import { ConfirmSwitch } from '../../components/confirm-switch';
import { type Column, DataTable } from '../../components/data-table';
import { RowLink } from '../../components/row-link';
import { Loaded } from '../../components/page-states';
import { requestedPage, Pager } from '../../components/pager';
import { useAccess } from '../../permissions';
import { useDeleteWebhook, useUpdateWebhook, useWebhookPage } from '../../services/webhooks';
import { useOutcome } from '../../utils/errors';
import { usePolling } from '../../utils/polling';
import { useText } from '../../utils/text';
import { EventTags, HealthBadge, LastAnswerCell } from './cells';
import { useWaitingChoice } from './switching-on';

const REFRESH_MS = 10_000;
const PER_PAGE = 20;

interface ListQuery {
  _q?: string;
  sort?: string;
  page?: string;
  pageSize?: string;
}

/** @param onSwitch switches a webhook on, or off after it was confirmed */
const useColumns = (
  onSwitch: (webhook: number, active: boolean) => Promise<void>
): Column<WebhookSummary>[] => {
  const text = useText();
  const { can } = useAccess();
  const outcome = useOutcome();
  const [remove] = useDeleteWebhook();
  return [
    {
      id: 'name',
      label: text('webhook.name'),
      sortable: true,
      cell: ({ id, name, url }) => (
        <>
          <RowLink to={String(id)}>{name}</RowLink>
          <Cut variant="pi" textColor="neutral600">
            {url}
          </Cut>
        </>
      ),
    },
    {
      id: 'health',
      label: text('webhook.health'),
      cell: ({ health }) => <HealthBadge health={health} counts />,
    },
    {
      id: 'events',
      wide: true,
      label: text('webhook.events'),
      cell: ({ events, event_count: count }) => <EventTags events={events} count={count} />,
    },
    {
      id: 'last',
      label: text('webhook.last'),
      cell: ({ last }) => <LastAnswerCell last={last} />,
    },
    {
      id: 'active',
      label: text('webhook.active'),
      sortable: true,
      interactive: true,
      cell: ({ id, name, active }) => (
        <ConfirmSwitch
          label={text('webhook.activeOf', { name })}
          question={text('webhook.switchOff.question', { name })}
          checked={active}
          disabled={!can('webhooks.update')}
          onChange={(checked) => onSwitch(id, checked)}
          onLabel={text('webhook.on')}
          offLabel={text('webhook.off')}
        />
      ),
    },
    {
      id: 'actions',
      label: text('table.actions'),
      hiddenLabel: true,
      interactive: true,
      cell: ({ id, name }) =>
        can('webhooks.delete') && (
          <ConfirmButton
            compact
            icon={<Trash />}
            label={text('webhook.delete', { name })}
            question={text('webhook.delete.question', { name })}
            onConfirm={() => remove(id).then((done) => outcome(done, 'webhook.deleted'))}
          />
        ),
    },
  ];
};

/** Switches webhooks from their list. `question` is what it may ask before. */
const useSwitch = () => {
  const outcome = useOutcome();
  const [update] = useUpdateWebhook();
  const { ask, question } = useWaitingChoice();
  const onSwitch = async (id: number, active: boolean): Promise<void> => {
    const waiting = active ? await ask(id) : undefined;
    if (waiting === null) return;
    const switchedOn = waiting === 'discard' ? 'banner.discarded' : 'banner.on';
    outcome(await update({ id, active, waiting }), active ? switchedOn : 'webhook.switchedOff');
  };
  return { onSwitch, question };
};

const WebhookListPage = () => {
  const text = useText();
  const navigate = useNavigate();
  const { can } = useAccess();
  const [{ query }, setQuery] = useQueryParams<ListQuery>();
  const sort = query.sort ?? 'name:asc';
  const webhooks = useWebhookPage(
    {
      q: query._q?.trim() || undefined,
      sort,
      ...requestedPage(query, PER_PAGE),
    },
    { pollingInterval: usePolling(REFRESH_MS) }
  );
  const { onSwitch, question } = useSwitch();
  const columns = useColumns(onSwitch);
  const [by = 'name', direction] = sort.split(':');
  const sorting = { by, descending: direction === 'desc' };

  const create = can('webhooks.create') && (
    <LinkButton tag={Link} to="create" startIcon={<Plus />} size="S">
      {text('webhook.create')}
    </LinkButton>
  );

  return (
    <Page.Main>
      <Page.Title>{text('nav.webhooks')}</Page.Title>
      <Layouts.Header
        title={text('nav.webhooks')}
        subtitle={text('webhook.subtitle')}
        primaryAction={create}
      />
      <Layouts.Action
        startActions={<SearchInput label={text('webhook.search')} trackedEvent={null} />}
      />
      <Layouts.Content>
        <Loaded query={webhooks}>
          {({ data, meta }) => (
            <>
              <DataTable
                label={text('nav.webhooks')}
                columns={columns}
                rows={data}
                rowId={({ id }) => id}
                onOpen={({ id }) => navigate(String(id))}
                sorting={sorting}
                onSort={(next) =>
                  setQuery({ sort: `${next.by}:${next.descending ? 'desc' : 'asc'}` })
                }
                empty={
                  query._q
                    ? { text: text('table.noMatch') }
                    : { text: text('webhook.empty'), action: create }
                }
              />
              {meta.pagination.total > 0 && <Pager pagination={meta.pagination} />}
            </>
          )}
        </Loaded>
        {question}
      </Layouts.Content>
    </Page.Main>
  );
};

export default WebhookListPage;
