import { Box } from '@strapi/design-system';
import { Pagination as HostPagination } from '@strapi/strapi/admin';
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

/** The host's pagination, on `page` and `pageSize` of the address. */
export const Pager = ({ pagination }: PagerProps) => (
  <Wrapping paddingTop={4}>
    <HostPagination.Root
      pageCount={pagination.page_count}
      total={pagination.total}
      defaultPageSize={pagination.per_page}
    >
      <HostPagination.PageSize options={['10', '20', '50', '100']} />
      <HostPagination.Links />
    </HostPagination.Root>
  </Wrapping>
);

/** One page of rows that are all here. */
export const pageOf = <T,>(rows: readonly T[], page: number, perPage: number) => {
  const pageCount = Math.max(1, Math.ceil(rows.length / perPage));
  const current = Math.min(Math.max(1, page), pageCount);
  return {
    rows: rows.slice((current - 1) * perPage, current * perPage),
    pagination: { page: current, per_page: perPage, page_count: pageCount, total: rows.length },
  };
};
