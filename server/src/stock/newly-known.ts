import type { Core } from '@strapi/strapi';
import type { ItemName } from './items';

type Listener = (names: readonly ItemName[]) => Promise<void>;

const listeners = new WeakMap<Core.Strapi, Listener[]>();

/**
 * Hears of items that were made or renamed, in the transaction that did it. The stock knows nothing
 * of tills; whoever keeps lines waiting for an item registers here.
 */
export const onItemsKnown = (strapi: Core.Strapi, listener: Listener): void => {
  listeners.set(strapi, [...(listeners.get(strapi) ?? []), listener]);
};

export const notifyItemsKnown = async (
  strapi: Core.Strapi,
  names: readonly ItemName[]
): Promise<void> => {
  for (const listener of listeners.get(strapi) ?? []) await listener(names);
};
