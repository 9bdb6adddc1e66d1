import type {
  AdjustInput,
  Item,
  ItemInput,
  Level,
  LevelExplanation,
  Location,
  LocationInput,
  Movement,
  StockGridRow,
} from '../../../shared/contracts/stock';
import type { Page } from '../../../shared/contracts/webhooks';
import { api, everyPage, type One, queryString } from './api';

export interface GridFilter {
  search?: string;
  page?: number;
  perPage?: number;
  /** `sku`, `name` or `total`; after a minus the other way round. */
  sort?: string;
  low?: 'true';
  negative?: 'true';
}

export interface LevelFilter extends Pick<GridFilter, 'search' | 'page' | 'perPage'> {
  sku?: string;
  location?: string;
}

/** The movements whose sum one term of a level's explanation is. */
export interface TermFilter {
  type?: string;
  reason?: string;
  rest?: 'true';
}

const stockApi = api.injectEndpoints({
  endpoints: (build) => ({
    switchboardLocations: build.query<Location[], void>({
      queryFn: (_argument, _api, _extra, baseQuery) =>
        everyPage(baseQuery, '/switchboard/locations'),
      providesTags: ['SwitchboardStock'],
    }),
    switchboardCreateLocation: build.mutation<Location, LocationInput>({
      query: (data) => ({ url: '/switchboard/locations', method: 'POST', data }),
      transformResponse: ({ data }: One<Location>) => data,
      invalidatesTags: ['SwitchboardStock', 'SwitchboardEvent'],
    }),
    switchboardCreateItem: build.mutation<Item, ItemInput>({
      query: (data) => ({ url: '/switchboard/items', method: 'POST', data }),
      transformResponse: ({ data }: One<Item>) => data,
      // Records that waited for this item go on.
      invalidatesTags: ['SwitchboardStock', 'SwitchboardEvent'],
    }),
    switchboardAdjust: build.mutation<unknown, { itemId: number } & AdjustInput>({
      query: ({ itemId, ...data }) => ({
        url: `/switchboard/items/${itemId}/adjust`,
        method: 'POST',
        data,
      }),
      invalidatesTags: ['SwitchboardStock'],
    }),
    switchboardStockGrid: build.query<Page<StockGridRow>, GridFilter>({
      query: ({ perPage, ...filter }) =>
        `/switchboard/stock-grid${queryString({ ...filter, per_page: perPage })}`,
      providesTags: ['SwitchboardStock'],
    }),
    switchboardLevels: build.query<Page<Level>, LevelFilter>({
      query: ({ perPage, ...filter }) =>
        `/switchboard/levels${queryString({ ...filter, per_page: perPage })}`,
      providesTags: ['SwitchboardStock'],
    }),
    /** Every level, page after page: for an export. */
    switchboardAllLevels: build.query<Level[], Pick<LevelFilter, 'search'>>({
      queryFn: ({ search }, _api, _extra, baseQuery) =>
        everyPage(baseQuery, '/switchboard/levels', { search }),
      keepUnusedDataFor: 0,
    }),
    switchboardLevel: build.query<Level, number>({
      query: (id) => `/switchboard/levels/${id}`,
      transformResponse: ({ data }: One<Level>) => data,
      providesTags: ['SwitchboardStock'],
    }),
    switchboardMovements: build.query<
      Page<Movement>,
      { levelId: number; page: number; perPage: number } & TermFilter
    >({
      query: ({ levelId, perPage, ...filter }) =>
        `/switchboard/levels/${levelId}/movements${queryString({ ...filter, per_page: perPage })}`,
      providesTags: ['SwitchboardStock'],
    }),
    switchboardExplanation: build.query<LevelExplanation, number>({
      query: (id) => `/switchboard/levels/${id}/explanation`,
      transformResponse: ({ data }: One<LevelExplanation>) => data,
      providesTags: ['SwitchboardStock'],
    }),
  }),
});

export const {
  useSwitchboardLocationsQuery: useLocations,
  useSwitchboardCreateLocationMutation: useCreateLocation,
  useSwitchboardCreateItemMutation: useCreateItem,
  useSwitchboardAdjustMutation: useAdjust,
  useSwitchboardStockGridQuery: useStockGrid,
  useSwitchboardLevelsQuery: useLevels,
  useLazySwitchboardAllLevelsQuery: useAllLevels,
  useSwitchboardLevelQuery: useLevel,
  useSwitchboardMovementsQuery: useMovements,
  useSwitchboardExplanationQuery: useExplanation,
} = stockApi;
