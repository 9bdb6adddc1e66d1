import {
  Box,
  EmptyStateLayout,
  Flex,
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
import { Cut } from './cut';
import { useIsNarrow } from './narrow';

export interface Column<Row> {
  id: string;
  label: string;
  /** For columns of buttons, whose heading only a screen reader says. */
  hiddenLabel?: boolean;
  /** Shown in place of the label, such as a checkbox for all rows. */
  heading?: ReactNode;
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
const CELL_WIDTH = '28rem';

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
  }

  /* Times and the parts of a cell take two lines where there is no room for one. */
  td span,
  td time,
  th span {
    white-space: normal;
  }
`;

const Sort = styled.button`
  display: inline-flex;
  align-items: center;
  gap: ${({ theme }) => theme.spaces[1]};
  padding: 0;
  border: none;
  background: none;
  cursor: pointer;
`;

/** Bare words and numbers get the look of a table's text; anything else has one of its own. */
const Cell = ({ content }: { content: ReactNode }) => (
  <Box maxWidth={CELL_WIDTH} minWidth={0}>
    {typeof content === 'string' || typeof content === 'number' ? (
      <Cut textColor="neutral800">{String(content)}</Cut>
    ) : (
      content
    )}
  </Box>
);

interface HeadingProps {
  column: Pick<Column<never>, 'id' | 'label' | 'hiddenLabel' | 'heading' | 'sortable' | 'wide'>;
  sorting: Sorting | undefined;
  onSort: ((sorting: Sorting) => void) | undefined;
}

/** A column's heading; a click sorts by it, and the one that is sorted by has the arrow. */
const Heading = ({ column, sorting, onSort }: HeadingProps) => {
  const text = useText();
  const { id, label, hiddenLabel, heading, sortable, wide } = column;
  const sorted = sorting?.by === id ? sorting : null;
  const words = (
    <Typography variant="sigma" textColor="neutral600">
      {label}
    </Typography>
  );
  const direction = sorted?.descending ? 'descending' : 'ascending';
  return (
    <Th
      className={wide ? WIDE : undefined}
      role="columnheader"
      aria-sort={sorted ? direction : undefined}
    >
      {heading ?? (hiddenLabel ? <VisuallyHidden>{label}</VisuallyHidden> : null)}
      {!heading && !hiddenLabel && !(sortable && onSort) && words}
      {sortable && onSort && (
        <Sort
          type="button"
          onClick={() => onSort({ by: id, descending: sorted !== null && !sorted.descending })}
        >
          <VisuallyHidden>{text('table.sort', { column: label })}</VisuallyHidden>
          <span aria-hidden>{words}</span>
          {sorted && (sorted.descending ? <CaretDown aria-hidden /> : <CaretUp aria-hidden />)}
        </Sort>
      )}
    </Th>
  );
};

type CardsProps<Row> = Pick<DataTableProps<Row>, 'label' | 'columns' | 'rows' | 'rowId' | 'onOpen'>;

/** The rows on a screen as narrow as a phone: each a card, which names its values. */
const Cards = <Row,>({ label, columns, rows, rowId, onOpen }: CardsProps<Row>) => (
  <Flex tag="ul" aria-label={label} direction="column" alignItems="stretch" gap={3}>
    {rows.map((row) => (
      <Box
        key={rowId(row)}
        tag="li"
        padding={4}
        hasRadius
        background="neutral0"
        shadow="tableShadow"
        onClick={onOpen ? () => onOpen(row) : undefined}
      >
        {columns.map(({ id, label: heading, hiddenLabel, cell, interactive }) => (
          <Flex
            key={id}
            gap={3}
            paddingTop={1}
            paddingBottom={1}
            alignItems="start"
            justifyContent={hiddenLabel ? 'end' : 'space-between'}
            onClick={
              interactive
                ? (event: { stopPropagation(): void }) => event.stopPropagation()
                : undefined
            }
          >
            {!hiddenLabel && (
              <Typography variant="sigma" textColor="neutral600">
                {heading}
              </Typography>
            )}
            <Cell content={cell(row)} />
          </Flex>
        ))}
      </Box>
    ))}
  </Flex>
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
  const isNarrow = useIsNarrow();
  if (rows.length === 0) {
    return (
      <EmptyStateLayout
        icon={<EmptyDocuments width="16rem" />}
        content={empty.text}
        action={empty.action}
      />
    );
  }
  if (isNarrow) return <Cards {...{ label, columns, rows, rowId, onOpen }} />;
  return (
    <Fitting>
      <Table colCount={columns.length} rowCount={rows.length + 1} aria-label={label}>
        <Thead>
          <Tr>
            {columns.map((column) => (
              <Heading key={column.id} column={column} sorting={sorting} onSort={onSort} />
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
