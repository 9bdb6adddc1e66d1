import { Typography } from '@strapi/design-system';
import type { Stocktake, StocktakeLine } from '../../../../shared/contracts/stock';
import { type Column, DataTable } from '../../components/data-table';
import { Panel } from '../../components/panel';
import { useText } from '../../utils/text';
import { MovementReason, Signed } from '../events/movement-table';

/** The effect of a count on each level, planned or done. */
export const CountPreview = ({ title, stocktake }: { title: string; stocktake: Stocktake }) => {
  const text = useText();
  const columns: Column<StocktakeLine>[] = [
    { id: 'sku', label: text('stock.item.sku'), cell: ({ item }) => item.sku },
    { id: 'name', label: text('stock.item.name'), cell: ({ item }) => item.name ?? '–' },
    { id: 'counted', label: text('level.counted'), cell: ({ counted }) => counted },
    {
      id: 'change',
      label: text('count.change'),
      cell: ({ before, after }) => (
        <Typography fontWeight="bold">{text('level.change.preview', { before, after })}</Typography>
      ),
    },
    {
      id: 'difference',
      label: text('count.difference'),
      cell: ({ before, after }) => <Signed value={after - before} />,
    },
    {
      id: 'reason',
      label: text('movement.reason'),
      cell: ({ reason }) => <MovementReason reason={reason} />,
    },
  ];
  return (
    <Panel title={title}>
      <DataTable
        label={title}
        columns={columns}
        rows={stocktake.counts}
        rowId={({ item }) => item.id}
        empty={{ text: text('line.none') }}
      />
    </Panel>
  );
};
