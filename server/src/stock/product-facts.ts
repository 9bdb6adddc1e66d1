import type { Core, UID } from '@strapi/strapi';
import { minorDigits } from '../../../shared/currencies';
import { getOptions } from '../config';
import { defaultLocale, isLocalized } from '../database/default-locale';
import { possibleSkus } from './products';

/** What the site's own product type says of an item. */
export interface ProductFacts {
  name: string | null;
  /** Minor units; null where it has none that its currency could count. */
  price: number | null;
  /** ISO 4217; null without a price. */
  currency: string | null;
}

export type ProductEntry = Record<string, unknown> & { id: number | string };

const CURRENCY = /^[A-Z]{3}$/;

/** Whether a mapped currency is one itself, and not the name of an attribute. */
export const isCurrencyCode = (mapped: string): boolean => CURRENCY.test(mapped);

/** The mapped fields as text: what a catalogue was made of. */
export const productFieldsText = (strapi: Core.Strapi): string => {
  const mapping = getOptions(strapi).stock;
  return JSON.stringify([mapping?.contentType, mapping?.name, mapping?.price, mapping?.currency]);
};

const PLAIN_DECIMAL = /^-?\d+(?:\.\d+)?$/;

/**
 * A price as a site's product has it, in major units, as an integer in minor units of its currency.
 * Rounded half up where it has more digits than the currency. null for what is no price.
 */
export const toMinorUnits = (value: unknown, currency: string): number | null => {
  if (typeof value !== 'number' && typeof value !== 'string') return null;
  const text = String(value).trim();
  if (!PLAIN_DECIMAL.test(text)) return null;
  // Shifted in the decimal text: a product of doubles would round 1.005 down.
  const minor = Math.round(Number(`${text}e${minorDigits(currency)}`));
  return Number.isSafeInteger(minor) ? minor : null;
};

/**
 * Puts those first that count: one product has an entry for each draft and language. That in the default
 * language counts, the published one of it, then the oldest.
 */
export const byWeight = async (
  strapi: Core.Strapi,
  uid: UID.ContentType,
  entries: readonly ProductEntry[]
): Promise<ProductEntry[]> => {
  const locale = isLocalized(strapi, uid) ? await defaultLocale(strapi) : null;
  const weightOf = (entry: ProductEntry): number =>
    2 * Number(entry.locale === locale) + Number(Boolean(entry.publishedAt));
  return [...entries].sort((a, b) => weightOf(b) - weightOf(a) || Number(a.id) - Number(b.id));
};

const CHUNK = 500;

/** Names and prices of the site's own products, by SKU; empty where the site maps neither. */
export const findProductFacts = async (
  strapi: Core.Strapi,
  skus: readonly string[]
): Promise<Map<string, ProductFacts>> => {
  const facts = new Map<string, ProductFacts>();
  const mapping = getOptions(strapi).stock;
  if (!mapping || (mapping.name === undefined && mapping.price === undefined)) return facts;
  const { contentType, sku: skuField, name, price, currency } = mapping;
  const uid = contentType as UID.ContentType;
  const { attributes } = strapi.contentTypes[uid] ?? { attributes: {} };
  const currencyOf = (entry: ProductEntry): string | null => {
    if (currency === undefined) return null;
    const value = currency in attributes ? entry[currency] : currency;
    return typeof value === 'string' && CURRENCY.test(value) ? value : null;
  };
  const factsOf = (entry: ProductEntry): ProductFacts => {
    const named = name === undefined ? null : entry[name];
    const money = currencyOf(entry);
    const minor = price === undefined || money === null ? null : toMinorUnits(entry[price], money);
    return {
      name: typeof named === 'string' ? named : null,
      price: minor,
      currency: minor === null ? null : money,
    };
  };
  const held = possibleSkus(strapi, skus);
  for (let start = 0; start < held.length; start += CHUNK) {
    const entries = (await strapi.db.query(uid).findMany({
      where: { [skuField]: { $in: held.slice(start, start + CHUNK) } },
    })) as ProductEntry[];
    for (const entry of await byWeight(strapi, uid, entries)) {
      const sku = String(entry[skuField]);
      if (!facts.has(sku)) facts.set(sku, factsOf(entry));
    }
  }
  return facts;
};
