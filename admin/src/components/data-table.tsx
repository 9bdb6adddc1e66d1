import {
  Box,
  EmptyStateLayout,
  IconButton,
  Table,
  Tbody,
  Td,
  Th,
  Thead,
  Tr,
  Typography,
  VisuallyHidden,
} from '@strapi/design-system';
import { CaretDown, CaretUp } from '@strapi/icons';
import { EmptyDocuments } from '@strapi/icons/symbols';
import type { ReactNode } from 'react';
import { useText } from '../utils/text';

export interface Column<Row> {
  id: string;
  label: string;
  /** For columns of buttons, whose heading only a screen reader says. */
  hiddenLabel?: boolean;
  cell(row: Row): ReactNode;
  /** A click into this cell does not open the row. */
  interactive?: boolean;
  sortable?: boolean;
}

export interface Sorting {
  by: string;
  descending: boolean;
}

interface DataTableProps<Row> {
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  rowId(row: Row): string | number;
  onOpen?(row: Row): void;
  sorting?: Sorting;
  onSort?(sorting: Sorting): void;
  empty: { text: string; action?: ReactNode };
}

/** Bare words and numbers get the look of a table's text; anything else has one of its own. */
const Cell = ({ content }: { content: ReactNode }) =>
  typeof content === 'string' || typeof content === 'number' ? (
    <Typography textColor="neutral800">{content}</Typography>
  ) : (
    <Box>{content}</Box>
  );

/** The host's table: rows that open on a click (their first cell holds the link for keyboards). */
export const DataTable = <Row,>({
  label,
  columns,
  rows,
  rowId,
  onOpen,
  sorting,
  onSort,
  empty,
}: DataTableProps<Row>) => {
  const text = useText();
  if (rows.length === 0) {
    return (
      <EmptyStateLayout
        icon={<EmptyDocuments width="16rem" />}
        content={empty.text}
        action={empty.action}
      />
    );
  }
  return (
    <Table colCount={columns.length} rowCount={rows.length + 1} aria-label={label}>
      <Thead>
        <Tr>
          {columns.map(({ id, label: heading, hiddenLabel, sortable }) => (
            <Th key={id}>
              {hiddenLabel ? (
                <VisuallyHidden>{heading}</VisuallyHidden>
              ) : (
                <Typography variant="sigma" textColor="neutral600">
                  {heading}
                </Typography>
              )}
              {sortable && onSort && (
                <IconButton
                  label={text('table.sort', { column: heading })}
                  variant="ghost"
                  size="XS"
                  onClick={() =>
                    onSort({ by: id, descending: sorting?.by === id && !sorting.descending })
                  }
                >
                  {sorting?.by === id && sorting.descending ? <CaretDown /> : <CaretUp />}
                </IconButton>
              )}
            </Th>
          ))}
        </Tr>
      </Thead>
      <Tbody>
        {rows.map((row) => (
          <Tr
            key={rowId(row)}
            onClick={onOpen ? () => onOpen(row) : undefined}
            style={{ cursor: onOpen ? 'pointer' : 'default' }}
          >
            {columns.map(({ id, cell, interactive }) => (
              <Td key={id} onClick={interactive ? (event) => event.stopPropagation() : undefined}>
                <Cell content={cell(row)} />
              </Td>
            ))}
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
};
