import type { SalesGroup, SalesRow } from '../../../../shared/contracts/pos';
import { csvLine, noFormula } from '../../runtime/csv';

/** Digits of a sum below nothing are no formula. */
const isSum = (value: string): boolean => /^-?\d+$/.test(value);

const cell = (value: string | number): string | number =>
  typeof value === 'number' || isSum(value) ? value : noFormula(value);

const nameOf = (row: SalesRow): string | number => {
  if ('day' in row) return row.day;
  return 'connection' in row ? row.connection.id : row.item.sku;
};

const COLUMNS = ['currency', 'sales_count', 'sales_total', 'refunds_count', 'refunds_total'];
const PIECES = ['pieces_sold', 'pieces_returned'];

const piecesOf = ({ pieces }: SalesRow): number[] =>
  pieces ? [pieces.sold, pieces.returned] : [0, 0];

interface SalesCsvOptions {
  /** Whether the rows say how many pieces went and came back. */
  pieces?: boolean | undefined;
  /** Of connections, by their ids. */
  names?: Readonly<Record<string, string | null>>;
}

/** Rows of sales as CSV (RFC 4180), with a header; money in minor units. */
export const salesCsv = (
  group: SalesGroup,
  rows: readonly SalesRow[],
  { pieces = false, names = {} }: SalesCsvOptions = {}
): string =>
  [
    [
      group,
      ...COLUMNS,
      ...(pieces ? PIECES : []),
      ...(group === 'connection' ? ['connection_name'] : []),
    ],
    ...rows.map((row) => [
      nameOf(row),
      row.currency,
      row.sales.count,
      row.sales.total,
      row.refunds.count,
      row.refunds.total,
      ...(pieces ? piecesOf(row) : []),
      ...('connection' in row ? [names[row.connection.id] ?? ''] : []),
    ]),
  ]
    .map((cells) => csvLine(cells.map(cell)))
    .join('');
