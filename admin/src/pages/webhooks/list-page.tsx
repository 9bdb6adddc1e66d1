import { Flex, LinkButton, Tag, Typography } from '@strapi/design-system';
import { Plus, Trash } from '@strapi/icons';
import { Layouts, Page, SearchInput, useQueryParams } from '@strapi/strapi/admin';
import { useMemo } from 'react';
import { Link, useNavigate } from 'react-router-dom';
import type { WebhookHealth } from '../../../../shared/contracts/overview';
import type { Webhook } from '../../../../shared/contracts/webhooks';
import { ConfirmButton } from '../../components/confirm-button';
import { ConfirmSwitch } from '../../components/confirm-switch';
import { type Column, DataTable, type Sorting } from '../../components/data-table';
import { RowLink } from '../../components/row-link';
import { Loaded } from '../../components/page-states';
import { pageOf, Pager } from '../../components/pager';
import { useAccess } from '../../permissions';
import {
  useDeleteWebhook,
  useHealth,
  useUpdateWebhook,
  useWebhooks,
} from '../../services/webhooks';
import { useOutcome } from '../../utils/errors';
import { useText } from '../../utils/text';
import { EventTags, HealthCell, LastAnswerCell } from './cells';

const REFRESH_MS = 10_000;

const sortValue = (webhook: Webhook, by: string): string | number => {
  if (by === 'active') return webhook.active ? 0 : 1;
  return by === 'url' ? webhook.url : webhook.name.toLocaleLowerCase();
};

/** Those that match the search, in the order asked for. */
export const arrange = (
  webhooks: readonly Webhook[],
  search: string,
  { by, descending }: Sorting
): Webhook[] => {
  const wanted = search.trim().toLocaleLowerCase();
  const matches = webhooks.filter(({ name, url, events }) =>
    [name, url, ...events].some((field) => field.toLocaleLowerCase().includes(wanted))
  );
  const sign = descending ? -1 : 1;
  return matches.sort((a, b) => {
    const [left, right] = [sortValue(a, by), sortValue(b, by)];
    if (left === right) return a.id - b.id;
    return left < right ? -sign : sign;
  });
};

interface ListQuery {
  _q?: string;
  sort?: string;
  page?: string;
  pageSize?: string;
}

const useColumns = (health: ReadonlyMap<number, WebhookHealth>): Column<Webhook>[] => {
  const text = useText();
  const { can } = useAccess();
  const outcome = useOutcome();
  const [update] = useUpdateWebhook();
  const [remove] = useDeleteWebhook();
  return [
    {
      id: 'name',
      label: text('webhook.name'),
      sortable: true,
      cell: ({ id, name }) => <RowLink to={String(id)}>{name}</RowLink>,
    },
    {
      id: 'url',
      label: text('webhook.url'),
      sortable: true,
      cell: ({ url }) => (
        <Typography textColor="neutral800" ellipsis maxWidth="28rem" tag="div" title={url}>
          {url}
        </Typography>
      ),
    },
    {
      id: 'events',
      label: text('webhook.events'),
      cell: ({ events }) => <EventTags events={events} />,
    },
    {
      id: 'health',
      label: text('health.title'),
      cell: ({ id }) => <HealthCell health={health.get(id)} />,
    },
    {
      id: 'last',
      label: text('webhook.last'),
      cell: ({ id }) => <LastAnswerCell last={health.get(id)?.last ?? null} />,
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
          onChange={(checked) =>
            update({ id, active: checked }).then((done) =>
              outcome(done, checked ? 'banner.on' : 'webhook.switchedOff')
            )
          }
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

const WebhookListPage = () => {
  const text = useText();
  const navigate = useNavigate();
  const { can } = useAccess();
  const [{ query }, setQuery] = useQueryParams<ListQuery>();
  const webhooks = useWebhooks(undefined, { pollingInterval: REFRESH_MS });
  const health = useHealth(undefined, { pollingInterval: REFRESH_MS });
  const byId = useMemo(
    () => new Map((health.data?.webhooks ?? []).map((one) => [one.webhook_id, one])),
    [health.data]
  );
  const columns = useColumns(byId);
  const [by = 'name', direction] = (query.sort ?? 'name:asc').split(':');
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
        endActions={
          health.data &&
          !health.data.complete && (
            <Flex>
              <Tag icon={undefined}>{text('health.partial')}</Tag>
            </Flex>
          )
        }
      />
      <Layouts.Content>
        <Loaded query={webhooks}>
          {(all) => {
            const { rows, pagination } = pageOf(
              arrange(all, query._q ?? '', sorting),
              Number(query.page ?? 1),
              Number(query.pageSize ?? 20)
            );
            return (
              <>
                <DataTable
                  label={text('nav.webhooks')}
                  columns={columns}
                  rows={rows}
                  rowId={({ id }) => id}
                  onOpen={({ id }) => navigate(String(id))}
                  sorting={sorting}
                  onSort={(next) =>
                    setQuery({ sort: `${next.by}:${next.descending ? 'desc' : 'asc'}` })
                  }
                  empty={
                    all.length === 0
                      ? { text: text('webhook.empty'), action: create }
                      : { text: text('table.noMatch') }
                  }
                />
                {all.length > 0 && <Pager pagination={pagination} />}
              </>
            );
          }}
        </Loaded>
      </Layouts.Content>
    </Page.Main>
  );
};

export default WebhookListPage;
