import type { Core } from '@strapi/strapi';
import { type Executor, table } from '../../database/connection';
import { fieldError } from '../../http/validation';
import { itemFromInput, skuDigest } from '../../stock/items';
import type { ItemsService } from '../../stock/items-service';
import { locationFromInput } from '../../stock/locations';
import { type ItemRow, ITEMS_TABLE } from '../../stock/tables';
import type { Resolve, Target } from './inputs';
import { refusal } from '../../runtime/refusal';

/** Where a mapping leads; without an item and a location it ignores lines. */
export interface Destination {
  item_id: number | null;
  location_id: number | null;
  /** The item was made for it. */
  made_item: boolean;
  /** The item was archived, and was brought back for it. */
  revived_item: boolean;
}

export const itemsService = (strapi: Core.Strapi): ItemsService =>
  strapi.service('plugin::switchboard.stock-items') as unknown as ItemsService;

const NOWHERE: Destination = {
  item_id: null,
  location_id: null,
  made_item: false,
  revived_item: false,
};

/** Makes an item for a value; one of that SKU that was archived comes back. */
const makeItem = async (
  strapi: Core.Strapi,
  trx: Executor,
  { kind, value }: Resolve,
  create: NonNullable<Target['create']>
): Promise<Destination> => {
  const asked = create === true ? {} : create;
  const sku = asked.sku ?? value;
  const gtin = asked.gtin ?? (kind === 'gtin' ? value : null);
  const known = (await table(strapi, trx, ITEMS_TABLE)
    .where({ sku_digest: skuDigest(sku) })
    .whereNotNull('archived_at')
    .first()) as ItemRow | undefined;
  if (known) {
    const { id } = await itemsService(strapi).updateItem(Number(known.id), {
      archived: false,
      ...(asked.name !== undefined && { name: asked.name }),
      ...(asked.low_at !== undefined && { low_at: asked.low_at }),
    });
    return { ...NOWHERE, item_id: id, revived_item: true };
  }
  const { id } = await itemsService(strapi).createItem({
    sku,
    gtin,
    name: asked.name ?? null,
    low_at: asked.low_at ?? 0,
    opening: [],
  });
  return { ...NOWHERE, item_id: id, made_item: true };
};

/**
 * Where an owner says that a value leads.
 * @param store  false: an item that is to be made is not
 * @throws ValidationError (400) that names what there is none of
 */
export const destinationOf = async (
  strapi: Core.Strapi,
  trx: Executor,
  input: Resolve,
  store: boolean
): Promise<Destination> => {
  const { to } = input;
  if (to.location !== undefined) {
    const location = await locationFromInput(strapi, trx, to.location, 'to.location');
    return { ...NOWHERE, location_id: Number(location.id) };
  }
  if (to.item !== undefined) {
    const item = await itemFromInput(strapi, trx, to.item, 'to.item');
    if (item.archived_at !== null) throw fieldError('to.item', refusal('is archived', 'archived'));
    return { ...NOWHERE, item_id: Number(item.id) };
  }
  if (to.create === undefined || !store) return NOWHERE;
  return makeItem(strapi, trx, input, to.create);
};
