import { Button, Flex, Link as DesignLink, Typography } from '@strapi/design-system';
import { Download } from '@strapi/icons';
import { Layouts, Page, SearchInput, useQueryParams } from '@strapi/strapi/admin';
import { Link } from 'react-router-dom';
import type { Level, Location } from '../../../../shared/contracts/stock';
import { type Column, DataTable } from '../../components/data-table';
import { Loaded } from '../../components/page-states';
import { Pager } from '../../components/pager';
import { useAccess } from '../../permissions';
import { useAllLevels, useLevels, useLocations } from '../../services/stock';
import { download, toCsv } from '../../utils/csv';
import { useOutcome } from '../../utils/errors';
import { useText } from '../../utils/text';
import { CreateItemButton } from './create-item';
import { CreateLocationButton } from './create-location';

const REFRESH_MS = 5000;

interface StockQuery {
  _q?: string;
  page?: string;
  pageSize?: string;
}

interface GridRow {
  sku: string;
  name: string | null;
  gtin: string | null;
  levels: ReadonlyMap<number, Level>;
}

/** Levels as a grid: an item a row, a location a column. */
export const gridOf = (levels: readonly Level[]): GridRow[] => {
  const rows = new Map<number, GridRow & { levels: Map<number, Level> }>();
  for (const level of levels) {
    const { item_id: id, sku, name, gtin } = level;
    const row = rows.get(id) ?? { sku, name, gtin, levels: new Map<number, Level>() };
    row.levels.set(level.location.id, level);
    rows.set(id, row);
  }
  return [...rows.values()];
};

const useColumns = (locations: readonly Location[]): Column<GridRow>[] => {
  const text = useText();
  return [
    {
      id: 'sku',
      label: text('stock.item.sku'),
      cell: ({ sku }) => <Typography fontWeight="bold">{sku}</Typography>,
    },
    { id: 'name', label: text('stock.item.name'), cell: ({ name }) => name ?? '–' },
    { id: 'gtin', label: text('stock.item.gtin'), cell: ({ gtin }) => gtin ?? '–' },
    ...locations.map(({ id, name }): Column<GridRow> => ({
      id: `location-${id}`,
      label: name,
      cell: ({ sku, levels }) => {
        const level = levels.get(id);
        if (!level) return <Typography textColor="neutral600">–</Typography>;
        return (
          <DesignLink
            tag={Link}
            to={`levels/${level.id}`}
            aria-label={text('stock.levelOf', { sku, location: name, quantity: level.quantity })}
          >
            {String(level.quantity)}
          </DesignLink>
        );
      },
    })),
  ];
};

const ExportButton = ({ search }: { search?: string }) => {
  const text = useText();
  const outcome = useOutcome();
  const [load, { isFetching }] = useAllLevels();
  const onExport = async (): Promise<void> => {
    const answer = await load({ search });
    const levels = outcome(
      answer.data ? { data: answer.data } : { error: answer.error ?? new Error() }
    );
    if (!levels) return;
    const header = [
      text('stock.item.sku'),
      text('stock.item.gtin'),
      text('stock.item.name'),
      text('stock.location.code'),
      text('stock.location'),
      text('stock.quantity'),
      text('stock.counted'),
    ];
    const rows = levels.map((level) => [
      level.sku,
      level.gtin,
      level.name,
      level.location.code,
      level.location.name,
      level.quantity,
      level.last_counted_at,
    ]);
    download(`stock-${new Date().toISOString().slice(0, 10)}.csv`, toCsv(header, rows));
  };
  return (
    <Button
      variant="tertiary"
      startIcon={<Download />}
      loading={isFetching}
      onClick={() => void onExport()}
    >
      {text('stock.export')}
    </Button>
  );
};

const StockPage = () => {
  const text = useText();
  const { can } = useAccess();
  const [{ query }] = useQueryParams<StockQuery>();
  const search = query._q || undefined;
  const locations = useLocations();
  const levels = useLevels(
    { search, page: Number(query.page ?? 1), perPage: Number(query.pageSize ?? 50) },
    { pollingInterval: REFRESH_MS }
  );
  const columns = useColumns(locations.data ?? []);
  return (
    <Page.Main>
      <Page.Title>{text('nav.stock')}</Page.Title>
      <Layouts.Header
        title={text('nav.stock')}
        subtitle={text('stock.subtitle')}
        primaryAction={
          can('stock.manage') && (
            <Flex gap={2}>
              <CreateLocationButton />
              <CreateItemButton />
            </Flex>
          )
        }
      />
      <Layouts.Action
        startActions={<SearchInput label={text('stock.search')} trackedEvent={null} />}
        endActions={<ExportButton search={search} />}
      />
      <Layouts.Content>
        <Loaded query={levels}>
          {({ data, meta }) => (
            <>
              <DataTable
                label={text('stock.grid')}
                columns={columns}
                rows={gridOf(data)}
                rowId={({ sku }) => sku}
                empty={{ text: text(search ? 'table.noMatch' : 'stock.empty') }}
              />
              {data.length > 0 && <Pager pagination={meta.pagination} />}
            </>
          )}
        </Loaded>
      </Layouts.Content>
    </Page.Main>
  );
};

export default StockPage;
