import type { SalesGroup, SalesMeta, SalesRow, ShopDay } from '../../../shared/contracts/pos';
import type { Item } from '../../../shared/contracts/stock';
import { api, type One, queryString } from './api';

/** Days of the shop, `YYYY-MM-DD`, both included. */
export interface SalesFilter {
  from: string;
  to: string;
  group: SalesGroup;
  connection?: number | undefined;
  item?: number | undefined;
}

export interface Sales {
  data: SalesRow[];
  meta: SalesMeta;
}

/** The address of a report, under the admin API; with pieces. */
export const salesPath = (filter: SalesFilter, format?: 'csv'): string =>
  `/switchboard/sales-days${queryString({ ...filter, pieces: 'true', format })}`;

const salesApi = api.injectEndpoints({
  endpoints: (build) => ({
    switchboardShopDay: build.query<ShopDay, void>({
      query: () => '/switchboard/shop-day',
      transformResponse: ({ data }: One<ShopDay>) => data,
      // Another day has begun when it is asked for again.
      keepUnusedDataFor: 0,
    }),
    switchboardSales: build.query<Sales, SalesFilter>({
      query: (filter) => salesPath(filter),
      providesTags: ['SwitchboardEvent'],
    }),
    switchboardSoldItem: build.query<Item, number>({
      query: (id) => `/switchboard/items/${id}`,
      transformResponse: ({ data }: One<Item>) => data,
      providesTags: ['SwitchboardStock'],
    }),
  }),
});

export const {
  useSwitchboardShopDayQuery: useShopDay,
  useSwitchboardSalesQuery: useSales,
  useSwitchboardSoldItemQuery: useSoldItem,
} = salesApi;
