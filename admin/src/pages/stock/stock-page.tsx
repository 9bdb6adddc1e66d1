import { Button, Flex, Link as DesignLink, LinkButton, Typography } from '@strapi/design-system';
import { Download } from '@strapi/icons';
import { Layouts, Page, SearchInput, useQueryParams } from '@strapi/strapi/admin';
import { Link } from 'react-router-dom';
import type { Location, StockGridRow } from '../../../../shared/contracts/stock';
import { type Column, DataTable } from '../../components/data-table';
import { Filter } from '../../components/filter';
import { Loaded } from '../../components/page-states';
import { requestedPage, Pager } from '../../components/pager';
import { RowLink } from '../../components/row-link';
import { useAccess } from '../../permissions';
import { useAllLevels, useLocations, useStockGrid } from '../../services/stock';
import { download, toCsv } from '../../utils/csv';
import { useOutcome } from '../../utils/errors';
import { usePolling } from '../../utils/polling';
import { useText } from '../../utils/text';
import { CreateItemButton } from './create-item';
import { CreateLocationButton } from './create-location';
import { LevelMark } from './level-mark';

const REFRESH_MS = 5000;
const ONLY = ['low', 'negative'] as const;

interface StockQuery {
  _q?: string;
  /** `sku`, `name` or `total`; after a minus the other way round. */
  sort?: string;
  /** Only these: `low` or `negative`. */
  only?: string;
  page?: string;
  pageSize?: string;
}

const QuantityLink = ({
  row,
  level,
}: {
  row: StockGridRow;
  level: StockGridRow['levels'][number];
}) => {
  const text = useText();
  const { sku } = row;
  return (
    <Flex gap={2}>
      <DesignLink
        tag={Link}
        to={`levels/${level.id}`}
        aria-label={text('stock.levelOf', {
          sku,
          location: level.location.name,
          quantity: level.quantity,
        })}
      >
        {String(level.quantity)}
      </DesignLink>
      <LevelMark level={level} />
    </Flex>
  );
};

/** An item a row, a location a column. A dash is a location that never had any of it. */
const useColumns = (locations: readonly Location[]): Column<StockGridRow>[] => {
  const text = useText();
  return [
    {
      id: 'sku',
      label: text('stock.item.sku'),
      sortable: true,
      cell: ({ id, sku }) => <RowLink to={`items/${id}`}>{sku}</RowLink>,
    },
    {
      id: 'name',
      label: text('stock.item.name'),
      sortable: true,
      cell: ({ name }) => name ?? '–',
    },
    { id: 'gtin', wide: true, label: text('stock.item.gtin'), cell: ({ gtin }) => gtin ?? '–' },
    ...locations.map(({ id, name }): Column<StockGridRow> => ({
      id: `location-${id}`,
      label: name,
      cell: (row) => {
        const level = row.levels.find(({ location }) => location.id === id);
        if (!level) return <Typography textColor="neutral600">–</Typography>;
        return <QuantityLink row={row} level={level} />;
      },
    })),
    {
      id: 'total',
      label: text('stock.total'),
      sortable: true,
      cell: ({ total }) => <Typography fontWeight="bold">{total}</Typography>,
    },
  ];
};

/** Links to counts, transfers and the check of levels. */
const ByHandLinks = () => {
  const text = useText();
  const { can } = useAccess();
  return (
    <>
      {can('stock.manage') && (
        <LinkButton tag={Link} variant="tertiary" to="count">
          {text('count.title')}
        </LinkButton>
      )}
      <LinkButton tag={Link} variant="tertiary" to="transfers">
        {text('transfer.title')}
      </LinkButton>
      {can('stock.manage') && (
        <LinkButton tag={Link} variant="tertiary" to="check">
          {text('check.title')}
        </LinkButton>
      )}
    </>
  );
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
  const [{ query }, setQuery] = useQueryParams<StockQuery>();
  const search = query._q || undefined;
  const { sort = '', only } = query;
  const locations = useLocations();
  const grid = useStockGrid(
    {
      search,
      ...(sort && { sort }),
      ...(only === 'low' && { low: 'true' as const }),
      ...(only === 'negative' && { negative: 'true' as const }),
      ...requestedPage(query, 50),
    },
    { pollingInterval: usePolling(REFRESH_MS) }
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
            <Flex gap={2} wrap="wrap">
              <CreateLocationButton />
              <CreateItemButton />
            </Flex>
          )
        }
      />
      <Layouts.Action
        startActions={
          <Flex gap={2} wrap="wrap">
            <SearchInput label={text('stock.search')} trackedEvent={null} />
            <Filter
              label="stock.filter"
              value={only}
              options={ONLY.map((one) => [one, text(`stock.filter.${one}`)])}
              onChange={(chosen) =>
                chosen === undefined
                  ? setQuery({ only: '' }, 'remove')
                  : setQuery({ only: chosen, page: '1' })
              }
            />
          </Flex>
        }
        endActions={
          <Flex gap={2} wrap="wrap">
            <ByHandLinks />
            <ExportButton search={search} />
          </Flex>
        }
      />
      <Layouts.Content>
        <Loaded query={grid}>
          {({ data, meta }) => (
            <>
              <DataTable
                label={text('stock.grid')}
                columns={columns}
                rows={data}
                rowId={({ id }) => id}
                sorting={{ by: sort.replace('-', ''), descending: sort.startsWith('-') }}
                onSort={({ by, descending }) =>
                  setQuery({ sort: descending ? `-${by}` : by, page: '1' })
                }
                empty={{ text: text(search || only ? 'table.noMatch' : 'stock.empty') }}
              />
              {meta.pagination.total > 0 && <Pager pagination={meta.pagination} />}
            </>
          )}
        </Loaded>
      </Layouts.Content>
    </Page.Main>
  );
};

export default StockPage;
