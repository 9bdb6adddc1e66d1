import { Button, Flex, Typography } from '@strapi/design-system';
import { Download } from '@strapi/icons';
import type { ImportJob } from '../../../../shared/contracts/imports';
import { type Column, DataTable } from '../../components/data-table';
import { Loaded } from '../../components/page-states';
import { RowLink } from '../../components/row-link';
import { useImportRejects } from '../../services/imports';
import { download, toCsv } from '../../utils/csv';
import { readAll } from '../../utils/csv-reader';
import { useText } from '../../utils/text';

/** Differences that are shown; the file has more. */
const SHOWN = 50;

interface Difference {
  level: string;
  sku: string;
  location: string;
  quantity: number;
  right: number;
}

/** As `GET /switchboard/imports/:id/rejects` lists them; docs/shop.md#check-stock-levels. */
const readDifferences = (csv: string): Difference[] =>
  readAll(csv)
    .slice(1)
    .map(([level = '', sku = '', location = '', quantity, right]) => ({
      level,
      sku,
      location,
      quantity: Number(quantity),
      right: Number(right),
    }));

/** Which levels differ, or differed, from the sum of their movements. */
export const Differences = ({ job: { id, dry_run: dryRun } }: { job: ImportJob }) => {
  const text = useText();
  const query = useImportRejects(id);
  const is = text(dryRun ? 'check.is' : 'check.was');
  const right = text('check.right');
  const columns: Column<Difference>[] = [
    {
      id: 'sku',
      label: text('stock.item.sku'),
      cell: ({ level, sku }) => (
        <RowLink to={`/plugins/switchboard/stock/levels/${level}`}>{sku}</RowLink>
      ),
    },
    { id: 'location', label: text('stock.location'), cell: ({ location }) => location },
    { id: 'is', label: is, cell: ({ quantity }) => quantity },
    {
      id: 'right',
      label: right,
      cell: (row) => <Typography fontWeight="bold">{row.right}</Typography>,
    },
  ];
  return (
    <Loaded query={query}>
      {(csv) => {
        const differences = readDifferences(csv);
        const header = [text('stock.item.sku'), text('stock.location.code'), is, right];
        const lines = differences.map((row) => [row.sku, row.location, row.quantity, row.right]);
        return (
          <>
            <Flex>
              <Button
                variant="tertiary"
                startIcon={<Download />}
                onClick={() => download(`levels-${id}.csv`, toCsv(header, lines))}
              >
                {text('check.csv')}
              </Button>
            </Flex>
            <DataTable
              label={text('check.differences')}
              columns={columns}
              rows={differences.slice(0, SHOWN)}
              rowId={({ level }) => level}
              empty={{ text: text('check.none') }}
            />
          </>
        );
      }}
    </Loaded>
  );
};
