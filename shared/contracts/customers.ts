import type { Page } from './webhooks';
import type { Purchase } from './pos';

/** Services that the tills and the CRM offer each other. Each may be absent: a site may lack it. */

/** `customer` of a sale, without what does not fit. */
export interface SaleCustomer {
  email?: string;
  phone?: string;
  first_name?: string;
  last_name?: string;
}

/** The service `customers` of the CRM; call it in a transaction. */
export interface CustomersService {
  /**
   * The contact of a sale's customer; docs/shop.md#customers.
   * @param create  whether a contact is made where there is none
   * @param country  ISO 3166, by which phone numbers without a prefix are read
   * @returns its id, or null if nobody is meant for sure
   */
  attach(
    customer: SaleCustomer,
    options: { create: boolean; country: string | undefined }
  ): Promise<string | null>;
  /** Makes other writers of a contact's value wait until the transaction ends; false: the contact is gone. */
  lockValue(contact: string): Promise<boolean>;
  /**
   * Updates a locked contact's lifetime value to its purchases, quietly: no event says so. Other amounts
   * in it, such as an earlier or a typed one, stay.
   * @param change  by how much they come to more, in minor units of a currency of so many digits
   * @param before  asked for what they came to, where the site's column cannot hold it exactly
   */
  followPurchases(
    contact: string,
    purchases: { change: bigint; digits: number; before: () => Promise<bigint> }
  ): Promise<void>;
}

/** The service `pos-purchases` of the tills. */
export interface PurchasesService {
  /** Newest first. */
  list(contact: string, page: { page: number; per_page: number }): Promise<Page<Purchase>>;
  /**
   * Gives one contact the purchases of another one, in the caller's transaction; false if both are in different
   * currencies, so that their sums cannot be added.
   */
  move(from: string, to: string): Promise<boolean>;
  /** True if a connection looks for the contacts of its sales. */
  areAttached(): Promise<boolean>;
}
