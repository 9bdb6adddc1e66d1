import { Box } from '@strapi/design-system';
import { Pagination as HostPagination, useQueryParams } from '@strapi/strapi/admin';
import { useEffect } from 'react';
import { styled } from 'styled-components';
import type { Pagination } from '../../../shared/contracts/webhooks';

interface PagerProps {
  pagination: Pick<Pagination, 'page' | 'per_page' | 'page_count' | 'total'>;
}

/** On a narrow screen the page numbers go below the page size, and a long row of them wraps. */
const Wrapping = styled(Box)`
  & > *,
  & nav ol {
    flex-wrap: wrap;
  }
`;

/** The host's pagination, on `page` and `pageSize` of the address. A page after the last one leads to that. */
export const Pager = ({ pagination }: PagerProps) => {
  const [, setQuery] = useQueryParams();
  const { page, page_count: last } = pagination;
  useEffect(() => {
    if (page > last && last > 0) setQuery({ page: String(last) }, 'push', true);
  }, [page, last, setQuery]);
  return (
    <Wrapping paddingTop={4}>
      <HostPagination.Root
        pageCount={last}
        total={pagination.total}
        defaultPageSize={pagination.per_page}
      >
        <HostPagination.PageSize options={['10', '20', '50', '100']} />
        <HostPagination.Links />
      </HostPagination.Root>
    </Wrapping>
  );
};

const wholeOf = (text: string | undefined, most: number, otherwise: number): number => {
  const number = Number(text);
  return Number.isInteger(number) && number > 0 ? Math.min(number, most) : otherwise;
};

/** The page that an address asks for; what is no page counts as the first one. */
export const requestedPage = (
  query: { page?: string; pageSize?: string },
  perPage: number
): { page: number; perPage: number } => ({
  page: wholeOf(query.page, 1_000_000, 1),
  perPage: wholeOf(query.pageSize, 100, perPage),
});

/** One page of rows that are all here. */
export const pageOf = <T,>(rows: readonly T[], page: number, perPage: number) => {
  const pageCount = Math.max(1, Math.ceil(rows.length / perPage));
  const current = Math.min(Math.max(1, page), pageCount);
  return {
    rows: rows.slice((current - 1) * perPage, current * perPage),
    pagination: { page: current, per_page: perPage, page_count: pageCount, total: rows.length },
  };
};
