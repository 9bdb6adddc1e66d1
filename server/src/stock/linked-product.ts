import type { Core, UID } from '@strapi/strapi';
import type { LinkedProduct } from '../../../shared/contracts/stock';
import { getOptions } from '../config';
import { byWeight, type ProductEntry } from './product-facts';
import { possibleSkus } from './products';

/**
 * The site's own product that an item is, by its SKU; null where the site maps none (option
 * `stock`), or has none of that SKU. Compared byte for byte.
 */
export const linkedProduct = async (
  strapi: Core.Strapi,
  sku: string
): Promise<LinkedProduct | null> => {
  const mapping = getOptions(strapi).stock;
  if (!mapping) return null;
  if (possibleSkus(strapi, [sku]).length === 0) return null;
  const { contentType, sku: field, name } = mapping;
  const uid = contentType as UID.ContentType;
  const entries = (await strapi.db
    .query(uid)
    .findMany({ where: { [field]: sku } })) as ProductEntry[];
  const named = entries.filter((entry) => String(entry[field]) === sku);
  const [product] = await byWeight(strapi, uid, named);
  if (!product) return null;
  const label = name === undefined ? null : product[name];
  return {
    content_type: contentType,
    document_id: String(product.documentId ?? product.id),
    label: typeof label === 'string' && label !== '' ? label : sku,
  };
};
