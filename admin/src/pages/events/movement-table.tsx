import { Typography } from '@strapi/design-system';
import type { SimulatedMovement } from '../../../../shared/contracts/pos';
import { type Column, DataTable } from '../../components/data-table';
import { Time } from '../../components/time';
import { keyFor, useText } from '../../utils/text';

/** With its sign, so that a gain and a loss differ without colour too. */
export const Signed = ({ value }: { value: number }) => (
  <Typography
    fontWeight="bold"
    textColor={value === 0 ? 'neutral600' : value > 0 ? 'success600' : 'danger600'}
  >
    {value > 0 ? `+${value}` : value}
  </Typography>
);

/** Why a movement has the effect it has, in plain words. */
export const MovementReason = ({ reason }: { reason: string | null }) => {
  const text = useText();
  if (!reason) return <>–</>;
  const key = keyFor('movement.reason', reason);
  return <Typography style={{ whiteSpace: 'normal' }}>{key ? text(key) : reason}</Typography>;
};

type Row = SimulatedMovement & { id: number };

export const MovementTable = ({ label, movements }: { label: string; movements: Row[] }) => {
  const text = useText();
  const columns: Column<Row>[] = [
    { id: 'sku', label: text('stock.item.sku'), cell: ({ sku }) => sku },
    { id: 'location', label: text('stock.location'), cell: ({ location }) => location.name },
    { id: 'type', label: text('movement.type'), cell: ({ type }) => text(`movement.type.${type}`) },
    {
      id: 'at',
      label: text('movement.at'),
      cell: ({ effective_at: at }) => <Time at={at} />,
    },
    { id: 'quantity', label: text('movement.quantity'), cell: ({ quantity }) => quantity },
    {
      id: 'effect',
      label: text('movement.effect'),
      cell: ({ effect }) => <Signed value={effect} />,
    },
    {
      id: 'reason',
      label: text('movement.reason'),
      cell: ({ reason }) => <MovementReason reason={reason} />,
    },
  ];
  return (
    <DataTable
      label={label}
      columns={columns}
      rows={movements}
      rowId={({ id }) => id}
      empty={{ text: text('event.movements.none') }}
    />
  );
};
