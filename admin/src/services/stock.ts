import type {
  AdjustInput,
  Item,
  ItemInput,
  Level,
  Location,
  LocationInput,
  Movement,
} from '../../../shared/contracts/stock';
import type { Page } from '../../../shared/contracts/webhooks';
import { api, PAGE_MAX, queryString } from './api';

interface One<T> {
  data: T;
}

export interface LevelFilter {
  search?: string;
  sku?: string;
  location?: string;
  page?: number;
  perPage?: number;
}

const stockApi = api.injectEndpoints({
  endpoints: (build) => ({
    switchboardLocations: build.query<Location[], void>({
      query: () => `/switchboard/locations${queryString({ per_page: PAGE_MAX })}`,
      transformResponse: ({ data }: Page<Location>) => data,
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
    switchboardLevels: build.query<Page<Level>, LevelFilter>({
      query: ({ perPage, ...filter }) =>
        `/switchboard/levels${queryString({ ...filter, per_page: perPage })}`,
      providesTags: ['SwitchboardStock'],
    }),
    /** Every level, page after page: for an export. */
    switchboardAllLevels: build.query<Level[], Pick<LevelFilter, 'search'>>({
      async queryFn({ search }, _api, _extra, baseQuery) {
        const all: Level[] = [];
        for (let page = 1; ; page += 1) {
          const answer = await baseQuery(
            `/switchboard/levels${queryString({ search, page, per_page: PAGE_MAX })}`
          );
          if (answer.error) return { error: answer.error };
          const { data } = answer.data as Page<Level>;
          all.push(...data);
          if (data.length < PAGE_MAX) return { data: all };
        }
      },
      keepUnusedDataFor: 0,
    }),
    switchboardLevel: build.query<Level, number>({
      query: (id) => `/switchboard/levels/${id}`,
      transformResponse: ({ data }: One<Level>) => data,
      providesTags: ['SwitchboardStock'],
    }),
    switchboardMovements: build.query<
      Page<Movement>,
      { levelId: number; page: number; perPage: number }
    >({
      query: ({ levelId, page, perPage }) =>
        `/switchboard/levels/${levelId}/movements${queryString({ page, per_page: perPage })}`,
      providesTags: ['SwitchboardStock'],
    }),
  }),
});

export const {
  useSwitchboardLocationsQuery: useLocations,
  useSwitchboardCreateLocationMutation: useCreateLocation,
  useSwitchboardCreateItemMutation: useCreateItem,
  useSwitchboardAdjustMutation: useAdjust,
  useSwitchboardLevelsQuery: useLevels,
  useLazySwitchboardAllLevelsQuery: useAllLevels,
  useSwitchboardLevelQuery: useLevel,
  useSwitchboardMovementsQuery: useMovements,
} = stockApi;
