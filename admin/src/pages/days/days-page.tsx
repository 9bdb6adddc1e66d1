import { Button, Flex, Typography } from '@strapi/design-system';
import { Download } from '@strapi/icons';
import { Layouts, Page, useFetchClient } from '@strapi/strapi/admin';
import { useState } from 'react';
import type { ShopDay } from '../../../../shared/contracts/pos';
import { Loaded } from '../../components/page-states';
import { requestedPage } from '../../components/pager';
import { type SalesFilter, salesPath, useSales, useShopDay } from '../../services/sales';
import { download } from '../../utils/csv';
import { useOutcome } from '../../utils/errors';
import { usePolling } from '../../utils/polling';
import { useText } from '../../utils/text';
import { DaysFilters } from './days-filters';
import { filterOf, problemOf, useDaysQuery } from './days-query';
import { DaysTable } from './days-table';

const REFRESH_MS = 30_000;
const PER_PAGE = 50;

/** The report as the server writes it, which is the same that a script is given. */
const CsvButton = ({ filter, disabled }: { filter: SalesFilter; disabled: boolean }) => {
  const text = useText();
  const outcome = useOutcome();
  const { get } = useFetchClient();
  const [loading, setLoading] = useState(false);
  const onClick = async (): Promise<void> => {
    setLoading(true);
    try {
      const { data } = await get<string>(salesPath(filter, 'csv'), { responseType: 'text' });
      download(`sales-by-${filter.group}-${filter.from}-${filter.to}.csv`, data);
    } catch (error) {
      outcome({ error });
    } finally {
      setLoading(false);
    }
  };
  return (
    <Button
      variant="secondary"
      startIcon={<Download />}
      loading={loading}
      disabled={disabled}
      onClick={() => void onClick()}
    >
      {text('days.csv')}
    </Button>
  );
};

const Report = ({
  filter,
  perPage,
  page,
}: {
  filter: SalesFilter;
  perPage: number;
  page: number;
}) => {
  const {
    currentData: data,
    error,
    refetch,
  } = useSales(filter, { pollingInterval: usePolling(REFRESH_MS) });
  // An answer to another query must not be shown.
  return (
    <Loaded query={{ ...(data && { data }), error, refetch }}>
      {(sales) => <DaysTable sales={sales} filter={filter} page={page} perPage={perPage} />}
    </Loaded>
  );
};

const Content = ({ day }: { day: ShopDay }) => {
  const text = useText();
  const [query, change] = useDaysQuery();
  const filter = filterOf(query, day);
  const problem = problemOf(filter);
  return (
    <Page.Main>
      <Page.Title>{text('nav.sales')}</Page.Title>
      <Layouts.Header
        title={text('nav.sales')}
        subtitle={text('days.subtitle')}
        primaryAction={<CsvButton filter={filter} disabled={problem !== null} />}
      />
      <Layouts.Content>
        <Flex direction="column" alignItems="stretch" gap={4}>
          <DaysFilters filter={filter} today={day.today} change={change} />
          {problem ? (
            <Typography role="alert" textColor="danger600">
              {text(problem)}
            </Typography>
          ) : (
            <Report filter={filter} {...requestedPage(query, PER_PAGE)} />
          )}
          <Typography variant="pi" textColor="neutral600">
            {text('takings.hint', { zone: day.time_zone })}{' '}
            {(filter.group === 'item' || filter.item !== undefined) && text('days.byItem')}
          </Typography>
        </Flex>
      </Layouts.Content>
    </Page.Main>
  );
};

const DaysPage = () => {
  const day = useShopDay(undefined, { pollingInterval: usePolling(REFRESH_MS) });
  return <Loaded query={day}>{(shop) => <Content day={shop} />}</Loaded>;
};

export default DaysPage;
