import type { Item } from '../../../shared/contracts/stock';

/** An item that was found by a search, as forms keep it. */
export type ChosenItem = Pick<Item, 'id' | 'sku' | 'name'>;
