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
import { styled } from 'styled-components';
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
  /** Left out where there is little room: the row's own page says it too. */
  wide?: boolean;
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

const WIDE = 'switchboard-wide';

/** A screen of 1024 pixels with its menus has room for fewer columns, closer together. */
const Fitting = styled.div`
  @media (max-width: 1151px) {
    .${WIDE} {
      display: none;
    }

    th,
    td {
      padding-inline: ${({ theme }) => theme.spaces[2]};
    }

    /* Times and names take two lines there. */
    td a,
    td span,
    td time {
      white-space: normal;
    }
  }
`;

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
    <Fitting>
      <Table colCount={columns.length} rowCount={rows.length + 1} aria-label={label}>
        <Thead>
          <Tr>
            {columns.map(({ id, label: heading, hiddenLabel, sortable, wide }) => (
              <Th key={id} className={wide ? WIDE : undefined}>
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
              {columns.map(({ id, cell, interactive, wide }) => (
                <Td
                  key={id}
                  className={wide ? WIDE : undefined}
                  onClick={interactive ? (event) => event.stopPropagation() : undefined}
                >
                  <Cell content={cell(row)} />
                </Td>
              ))}
            </Tr>
          ))}
        </Tbody>
      </Table>
    </Fitting>
  );
};
