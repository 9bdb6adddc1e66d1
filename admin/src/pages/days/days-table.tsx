import { Typography } from '@strapi/design-system';
import type { ReactNode } from 'react';
import { useIntl } from 'react-intl';
import type { SalesFigures, SalesMeta, SalesRow } from '../../../../shared/contracts/pos';
import { type Column, DataTable } from '../../components/data-table';
import { useMoney } from '../../components/money';
import { Pager, pageOf } from '../../components/pager';
import { RowLink } from '../../components/row-link';
import { useAccess } from '../../permissions';
import type { Sales, SalesFilter } from '../../services/sales';
import { addedUp, takingsOf } from '../../utils/sales';
import { useText } from '../../utils/text';

/** A row of the report, or what all of one currency add up to. */
type Shown = { total: true } & SalesFigures;
type TableRow = SalesRow | Shown;

const isTotal = (row: TableRow): row is Shown => 'total' in row;

const keyOf = (row: TableRow): string => {
  if (isTotal(row)) return `total ${row.currency}`;
  if ('day' in row) return `${row.day} ${row.currency}`;
  const id = 'connection' in row ? row.connection.id : row.item.id;
  return `${id} ${row.currency}`;
};

/** The subject of a row: a day, a till or an item. */
const Subject = ({ row, names }: { row: TableRow; names: SalesMeta['names'] }) => {
  const text = useText();
  const { can } = useAccess();
  const { formatDate } = useIntl();
  if (isTotal(row)) return <Typography fontWeight="bold">{text('days.total')}</Typography>;
  if ('day' in row) {
    return (
      <Typography textColor="neutral800">
        {formatDate(`${row.day}T00:00:00Z`, { dateStyle: 'full', timeZone: 'UTC' })}
      </Typography>
    );
  }
  if ('item' in row) {
    const { id, sku } = row.item;
    const name = names[id];
    return <Typography textColor="neutral800">{name ? `${sku} · ${name}` : sku}</Typography>;
  }
  const { id } = row.connection;
  const name = names[id] ?? `#${id}`;
  return can('connections.read') ? (
    <RowLink to={`/plugins/switchboard/tills/${id}`}>{name}</RowLink>
  ) : (
    <Typography textColor="neutral800">{name}</Typography>
  );
};

const useColumns = (group: SalesFilter['group'], names: SalesMeta['names']): Column<TableRow>[] => {
  const text = useText();
  const money = useMoney();
  const { formatNumber } = useIntl();
  const cell =
    (read: (row: TableRow) => ReactNode) =>
    (row: TableRow): ReactNode => (
      <Typography textColor="neutral800" fontWeight={isTotal(row) ? 'bold' : 'regular'}>
        {read(row)}
      </Typography>
    );
  /** One sale has several items: their counts add up to nothing. */
  const count = (read: (row: TableRow) => number) =>
    cell((row) => (isTotal(row) && group === 'item' ? '–' : formatNumber(read(row))));
  return [
    {
      id: 'subject',
      label: text(`days.group.${group}`),
      cell: (row) => <Subject row={row} names={names} />,
    },
    { id: 'currency', label: text('days.currency'), cell: cell(({ currency }) => currency) },
    { id: 'sales', label: text('days.sales'), cell: count(({ sales }) => sales.count) },
    {
      id: 'salesTotal',
      label: text('days.salesTotal'),
      cell: cell(({ sales, currency }) => money(sales.total, currency)),
    },
    { id: 'refunds', label: text('days.refunds'), cell: count(({ refunds }) => refunds.count) },
    {
      id: 'refundsTotal',
      label: text('days.refundsTotal'),
      cell: cell(({ refunds, currency }) => money(refunds.total, currency)),
    },
    {
      id: 'takings',
      label: text('days.takings'),
      cell: cell((row) => money(takingsOf(row), row.currency)),
    },
    {
      id: 'sold',
      label: text('days.sold'),
      cell: cell(({ pieces }) => formatNumber(pieces?.sold ?? 0)),
    },
    {
      id: 'returned',
      label: text('days.returned'),
      cell: cell(({ pieces }) => formatNumber(pieces?.returned ?? 0)),
    },
  ];
};

interface DaysTableProps {
  sales: Sales;
  filter: SalesFilter;
  page: number;
  perPage: number;
}

/** The report, with what each currency adds up to below it; whatever page is shown, the sum of all. */
export const DaysTable = ({ sales, filter, page, perPage }: DaysTableProps) => {
  const text = useText();
  const { data, meta } = sales;
  const columns = useColumns(filter.group, meta.names);
  const { rows, pagination } = pageOf(data, page, perPage);
  const totals = addedUp(data).map((sum): Shown => ({ total: true, ...sum }));
  return (
    <>
      <DataTable<TableRow>
        label={text('days.title')}
        columns={columns}
        rows={[...rows, ...totals]}
        rowId={keyOf}
        empty={{ text: text('days.empty') }}
      />
      {data.length > 0 && <Pager pagination={pagination} />}
    </>
  );
};
