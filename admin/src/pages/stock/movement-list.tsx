import { Button, Flex, Typography } from '@strapi/design-system';
import { useQueryParams } from '@strapi/strapi/admin';
import type { Movement } from '../../../../shared/contracts/stock';
import { type Column, DataTable } from '../../components/data-table';
import { Loaded } from '../../components/page-states';
import { requestedPage, Pager } from '../../components/pager';
import { RowLink } from '../../components/row-link';
import { Time } from '../../components/time';
import { useAccess } from '../../permissions';
import { type TermFilter, useMovements } from '../../services/stock';
import { usePolling } from '../../utils/polling';
import { useText } from '../../utils/text';
import { MovementReason, Signed } from '../events/movement-table';

/** The record of a till, the transfer or the count that a movement comes from. */
const Origin = ({ movement }: { movement: Movement }) => {
  const text = useText();
  const { can } = useAccess();
  const { event_id: event, document_id: document, type } = movement;
  if (event !== null) {
    const number = text('event.number', { id: event });
    if (!can('pos-events.read')) return <>{number}</>;
    return <RowLink to={`/plugins/switchboard/records/${event}`}>{number}</RowLink>;
  }
  if (document === null) return <>–</>;
  return (
    <>{text(type === 'transfer' ? 'movement.transfer' : 'movement.stocktake', { id: document })}</>
  );
};

/** One that came within a minute needs no second time. */
const LATE_MS = 60_000;

const useColumns = (): Column<Movement>[] => {
  const text = useText();
  return [
    {
      id: 'at',
      label: text('movement.at'),
      cell: ({ effective_at: at, created_at: received }) => (
        <>
          <Time at={at} both />
          {Date.parse(received) - Date.parse(at) > LATE_MS && (
            <Typography variant="pi" textColor="neutral600" tag="div">
              {text('movement.received')} <Time at={received} variant="pi" both />
            </Typography>
          )}
        </>
      ),
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
      cell: ({ reason, note, undone }) => (
        <>
          {(reason !== null || !note) && <MovementReason reason={reason} />}
          {note && <Typography>{note}</Typography>}
          {undone && <Typography variant="pi">{text('movement.undone')}</Typography>}
        </>
      ),
    },
    {
      id: 'by',
      label: text('movement.by'),
      cell: ({ made_by: by, event_id: event }) =>
        by ?? (event === null ? '–' : text('movement.by.till')),
    },
    { id: 'event', label: text('movement.event'), cell: (row) => <Origin movement={row} /> },
  ];
};

interface MovementListProps {
  levelId: number;
  refreshMs: number;
  /** The term that they are narrowed to. */
  filter: TermFilter | null;
  onClear(): void;
}

/** The movements of a level, newest first: who, when and why. */
export const MovementList = ({ levelId, refreshMs, filter, onClear }: MovementListProps) => {
  const text = useText();
  const [{ query }] = useQueryParams<{ page?: string; pageSize?: string }>();
  const movements = useMovements(
    {
      levelId,
      ...filter,
      ...requestedPage(query, 50),
    },
    { pollingInterval: usePolling(refreshMs) }
  );
  const columns = useColumns();
  return (
    <Loaded query={movements}>
      {({ data, meta }) => (
        <div>
          {filter && (
            <Flex gap={2} paddingBottom={2} role="status">
              <Typography>{text('movement.filtered', { n: meta.pagination.total })}</Typography>
              <Button size="S" variant="ghost" onClick={onClear}>
                {text('movement.all')}
              </Button>
            </Flex>
          )}
          <DataTable
            label={text('event.movements')}
            columns={columns}
            rows={data}
            rowId={({ id }) => id}
            empty={{ text: text('event.movements.none') }}
          />
          {meta.pagination.total > 0 && <Pager pagination={meta.pagination} />}
        </div>
      )}
    </Loaded>
  );
};
