import type { Purchase } from '../../../shared/contracts/pos';
import type { Page } from '../../../shared/contracts/webhooks';
import { api, queryString } from './api';

export interface PurchasesOf {
  contact: string;
  page: number;
  perPage: number;
}

const customersApi = api.injectEndpoints({
  endpoints: (build) => ({
    switchboardPurchases: build.query<Page<Purchase>, PurchasesOf>({
      query: ({ contact, page, perPage }) =>
        `/switchboard/contacts/${encodeURIComponent(contact)}/purchases${queryString({
          page,
          per_page: perPage,
        })}`,
      providesTags: ['SwitchboardEvent'],
    }),
  }),
});

export const { useSwitchboardPurchasesQuery: usePurchases } = customersApi;
