import type {
  AdjustInput,
  ChangePreview,
  Item,
  ItemDetail,
  ItemInput,
  Level,
  LevelCheck,
  StockClock,
  Stocktake,
  StocktakeInput,
  Transfer,
  TransferInput,
} from '../../../shared/contracts/stock';
import type { Page } from '../../../shared/contracts/webhooks';
import { api, everyPage, type One, queryString } from './api';

type ItemChange = Partial<Pick<ItemInput, 'sku' | 'gtin' | 'name' | 'low_at'>> & {
  archived?: false;
};

/** Changes to items and levels by hand: items, low marks, counts, transfers. */
const byHandApi = api.injectEndpoints({
  endpoints: (build) => ({
    switchboardItems: build.query<Page<Item>, { search?: string; perPage?: number }>({
      query: ({ search, perPage }) =>
        `/switchboard/items${queryString({ search, per_page: perPage })}`,
      providesTags: ['SwitchboardStock'],
    }),
    switchboardItem: build.query<ItemDetail, number>({
      query: (id) => `/switchboard/items/${id}`,
      transformResponse: ({ data }: One<ItemDetail>) => data,
      providesTags: ['SwitchboardStock'],
    }),
    switchboardUpdateItem: build.mutation<Item, { id: number } & ItemChange>({
      query: ({ id, ...data }) => ({ url: `/switchboard/items/${id}`, method: 'PUT', data }),
      transformResponse: ({ data }: One<Item>) => data,
      invalidatesTags: ['SwitchboardStock', 'SwitchboardEvent'],
    }),
    switchboardArchiveItem: build.mutation<unknown, number>({
      query: (id) => ({ url: `/switchboard/items/${id}`, method: 'DELETE' }),
      invalidatesTags: ['SwitchboardStock'],
    }),
    switchboardItemLevels: build.query<Level[], number>({
      queryFn: (item, _api, _extra, baseQuery) =>
        everyPage(baseQuery, '/switchboard/levels', { item: String(item) }),
      providesTags: ['SwitchboardStock'],
    }),
    /** Everything that a location holds, or ever held. */
    switchboardLocationLevels: build.query<Level[], number>({
      queryFn: (location, _api, _extra, baseQuery) =>
        everyPage(baseQuery, '/switchboard/levels', { location: String(location) }),
      keepUnusedDataFor: 0,
    }),
    /** Begins a check; how it gets on is read as of an import. */
    switchboardCheckLevels: build.mutation<LevelCheck, { mend: boolean }>({
      query: (data) => ({ url: '/switchboard/levels/check', method: 'POST', data }),
      transformResponse: ({ data }: One<LevelCheck>) => data,
    }),
    switchboardSetLowMark: build.mutation<Level, { id: number; low_at: number | null }>({
      query: ({ id, ...data }) => ({ url: `/switchboard/levels/${id}`, method: 'PUT', data }),
      transformResponse: ({ data }: One<Level>) => data,
      invalidatesTags: ['SwitchboardStock'],
    }),
    /** A level now and after a change; stores nothing, so it is no mutation. */
    switchboardPreviewChange: build.query<ChangePreview, { itemId: number } & AdjustInput>({
      query: ({ itemId, ...data }) => ({
        url: `/switchboard/items/${itemId}/adjust`,
        method: 'POST',
        data: { ...data, preview: true },
      }),
      transformResponse: ({ data }: One<ChangePreview>) => data,
      keepUnusedDataFor: 0,
      // A till may sell while somebody looks at it.
      providesTags: ['SwitchboardStock'],
    }),
    switchboardStockClock: build.query<StockClock, void>({
      query: () => '/switchboard/stocktakes/clock',
      transformResponse: ({ data }: One<StockClock>) => data,
      keepUnusedDataFor: 0,
    }),
    switchboardPreviewStocktake: build.query<Stocktake, StocktakeInput>({
      query: (input) => ({
        url: '/switchboard/stocktakes',
        method: 'POST',
        data: { ...input, preview: true },
      }),
      transformResponse: ({ data }: One<Stocktake>) => data,
      keepUnusedDataFor: 0,
    }),
    switchboardStocktake: build.mutation<Stocktake, StocktakeInput>({
      query: (data) => ({ url: '/switchboard/stocktakes', method: 'POST', data }),
      transformResponse: ({ data }: One<Stocktake>) => data,
      invalidatesTags: ['SwitchboardStock'],
    }),
    switchboardTransfers: build.query<Page<Transfer>, { page: number; perPage: number }>({
      query: ({ page, perPage }) =>
        `/switchboard/transfers${queryString({ page, per_page: perPage })}`,
      providesTags: ['SwitchboardStock'],
    }),
    switchboardTransfer: build.mutation<Transfer, TransferInput>({
      query: (data) => ({ url: '/switchboard/transfers', method: 'POST', data }),
      transformResponse: ({ data }: One<Transfer>) => data,
      invalidatesTags: ['SwitchboardStock'],
    }),
  }),
});

export const {
  useSwitchboardItemsQuery: useItems,
  useSwitchboardItemQuery: useItem,
  useSwitchboardUpdateItemMutation: useUpdateItem,
  useSwitchboardArchiveItemMutation: useArchiveItem,
  useSwitchboardItemLevelsQuery: useItemLevels,
  useLazySwitchboardLocationLevelsQuery: useLocationLevels,
  useSwitchboardCheckLevelsMutation: useCheckLevels,
  useSwitchboardSetLowMarkMutation: useSetLowMark,
  useSwitchboardPreviewChangeQuery: usePreviewChange,
  useLazySwitchboardStockClockQuery: useStockClock,
  useLazySwitchboardPreviewStocktakeQuery: usePreviewStocktake,
  useSwitchboardStocktakeMutation: useStocktake,
  useSwitchboardTransfersQuery: useTransfers,
  useSwitchboardTransferMutation: useTransfer,
} = byHandApi;
