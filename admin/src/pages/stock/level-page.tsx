import { Flex, Typography } from '@strapi/design-system';
import { Pencil } from '@strapi/icons';
import { BackButton, Layouts, Page, useQueryParams } from '@strapi/strapi/admin';
import { useParams } from 'react-router-dom';
import type { Level, Movement } from '../../../../shared/contracts/stock';
import { type Column, DataTable } from '../../components/data-table';
import { Panel } from '../../components/panel';
import { Loaded } from '../../components/page-states';
import { Pager } from '../../components/pager';
import { Time, useAbsoluteTime } from '../../components/time';
import { useAccess } from '../../permissions';
import { useAdjust, useLevel, useMovements } from '../../services/stock';
import { useSaved } from '../../utils/errors';
import { useText } from '../../utils/text';
import { MovementReason, Signed } from '../events/movement-table';
import { RowLink } from '../../components/row-link';
import { DialogForm } from './dialog-form';

const REFRESH_MS = 3000;
const LIST = '/plugins/switchboard/stock';

const Adjust = ({ level }: { level: Level }) => {
  const text = useText();
  const savedOr = useSaved();
  const [adjust] = useAdjust();
  return (
    <DialogForm
      label={text('level.adjust')}
      icon={<Pencil />}
      fields={[
        {
          name: 'quantity',
          label: text('level.adjust.quantity'),
          hint: text('level.adjust.quantity.hint'),
          required: true,
          whole: true,
        },
        {
          name: 'reason',
          label: text('level.adjust.reason'),
          hint: text('level.adjust.reason.hint'),
          required: true,
        },
      ]}
      onSubmit={async ({ quantity, reason }) => {
        const done = await adjust({
          itemId: level.item_id,
          location: level.location.id,
          quantity: Number(quantity),
          reason: reason?.trim(),
        });
        return savedOr(done, 'level.adjust.done');
      }}
    />
  );
};

/** Where the number begins and what it is made of, in words. */
const Explanation = ({ level }: { level: Level }) => {
  const text = useText();
  const absolute = useAbsoluteTime();
  const counted = level.last_counted_at;
  const movements = useMovements({ levelId: level.id, page: 1, perPage: 100 });
  const count = movements.data?.data.find(
    ({ type, effective_at: at }) => type === 'count' && at === counted
  );
  return (
    <Flex direction="column" alignItems="start" gap={1}>
      <Typography variant="alpha" tag="p">
        {level.quantity}
      </Typography>
      {counted && (
        <Typography>
          {count
            ? text('level.explain.base.count', { at: absolute(counted), n: count.quantity })
            : text('level.explain.base.earlier', { at: absolute(counted) })}
        </Typography>
      )}
      {!counted && (
        <Typography>{text('level.explain.base.opening', { n: level.opening })}</Typography>
      )}
      <Typography>{text('level.explain.sum', { n: level.quantity })}</Typography>
    </Flex>
  );
};

const Movements = ({ levelId }: { levelId: number }) => {
  const text = useText();
  const { can } = useAccess();
  const [{ query }] = useQueryParams<{ page?: string; pageSize?: string }>();
  const movements = useMovements(
    { levelId, page: Number(query.page ?? 1), perPage: Number(query.pageSize ?? 50) },
    { pollingInterval: REFRESH_MS }
  );
  const columns: Column<Movement>[] = [
    {
      id: 'at',
      label: text('movement.at'),
      cell: ({ effective_at: at }) => <Time at={at} both />,
    },
    { id: 'type', label: text('movement.type'), cell: ({ type }) => text(`movement.type.${type}`) },
    { id: 'quantity', label: text('movement.quantity'), cell: ({ quantity }) => quantity },
    {
      id: 'effect',
      label: text('movement.effect'),
      cell: ({ effect }) => <Signed value={effect} />,
    },
    {
      id: 'after',
      label: text('movement.after'),
      cell: ({ quantity_after: after }) => <Typography fontWeight="bold">{after}</Typography>,
    },
    {
      id: 'reason',
      label: text('movement.reason'),
      cell: ({ reason, note }) => (
        <>
          <MovementReason reason={reason} />
          {note && <Typography variant="pi">{note}</Typography>}
        </>
      ),
    },
    {
      id: 'event',
      label: text('movement.event'),
      cell: ({ event_id: id }) => {
        if (id === null) return '–';
        const number = text('event.number', { id });
        if (!can('pos-events.read')) return number;
        return <RowLink to={`/plugins/switchboard/events/${id}`}>{number}</RowLink>;
      },
    },
  ];
  return (
    <Loaded query={movements}>
      {({ data, meta }) => (
        <>
          <DataTable
            label={text('event.movements')}
            columns={columns}
            rows={data}
            rowId={({ id }) => id}
            empty={{ text: text('event.movements.none') }}
          />
          {data.length > 0 && <Pager pagination={meta.pagination} />}
        </>
      )}
    </Loaded>
  );
};

const LevelPage = () => {
  const text = useText();
  const { can } = useAccess();
  const { id } = useParams();
  const query = useLevel(Number(id), { pollingInterval: REFRESH_MS });
  return (
    <Loaded query={query}>
      {(level) => {
        const title = text('level.title', { sku: level.sku, location: level.location.name });
        return (
          <Page.Main>
            <Page.Title>{title}</Page.Title>
            <Layouts.Header
              title={title}
              subtitle={level.name ?? undefined}
              navigationAction={<BackButton fallback={LIST} />}
              primaryAction={can('stock.manage') && <Adjust level={level} />}
            />
            <Layouts.Content>
              <Flex direction="column" alignItems="stretch" gap={6}>
                <Panel title={text('level.explain')}>
                  <Explanation level={level} />
                </Panel>
                <Movements levelId={level.id} />
              </Flex>
            </Layouts.Content>
          </Page.Main>
        );
      }}
    </Loaded>
  );
};

export default LevelPage;
