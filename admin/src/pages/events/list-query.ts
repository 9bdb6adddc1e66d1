import { useQueryParams } from '@strapi/strapi/admin';

/** The log's address, parsed. */
export interface ListQuery {
  tab?: string;
  _q?: string;
  state?: string;
  kind?: string;
  connection?: string;
  customer?: string;
  page?: string;
  pageSize?: string;
}

/** Narrows the log by the address, from its first page again; undefined takes the filter away. */
export const useNarrow = () => {
  const [, setQuery] = useQueryParams<ListQuery>();
  return (name: 'state' | 'kind' | 'connection' | 'customer') => (value: string | undefined) =>
    value === undefined
      ? setQuery({ [name]: '' }, 'remove')
      : setQuery({ [name]: value, page: '1' });
};
