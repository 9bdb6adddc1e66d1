import { AsyncLocalStorage } from 'node:async_hooks';
import type { UID } from '@strapi/strapi';
import type { LinkedProduct } from '../../../shared/contracts/stock';
import { minorDigits } from '../../../shared/currencies';
import type { App } from '../app';
import type { Options } from '../config';
import type { Db, Tx } from '../database/db';
import { defaultLocale, findInChunks, inChunks, isLocalized } from '../database/written-rows';
import { defaultLocation } from './locations';
import { type ItemRow, ITEMS_TABLE, type LevelRow, LEVELS_TABLE } from './tables';

/** The products of the `stock` option. All rows of a document count as the published one in the default language. */

type ProductMapping = NonNullable<Options['stock']> & { contentType: UID.ContentType };

/** The site's own product type (`stock` in the options); null: it names none. */
export const mappingOf = ({ options }: App): ProductMapping | null =>
  (options.stock as ProductMapping | undefined) ?? null;

/** A row of a product: a draft, or what is published, in one language. */
export interface ProductRow {
  id: number;
  document: string;
  isPublished: boolean;
  /** In the site's default language, or its type has none. */
  isDefault: boolean;
  sku: string | null;
  gtin: string | null;
  /** null if it is empty, or the option names no attribute. */
  quantity: number | null;
}

export interface Product extends Pick<ProductRow, 'document' | 'gtin' | 'quantity'> {
  sku: string;
  rows: ProductRow[];
}

const columnOf = (app: App, { contentType }: ProductMapping, name: string) => {
  const { attributes } = app.strapi.db.metadata.get(contentType);
  const attribute = attributes[name] as { type: string; columnName?: string } | undefined;
  return { type: attribute?.type ?? 'string', column: attribute?.columnName ?? name };
};

const LARGEST_OF: Record<string, bigint> = {
  integer: 2n ** 31n - 1n,
  biginteger: 2n ** 63n - 1n,
};

const INTEGER = /^-?(?:0|[1-9]\d*)$/;

/** The values that a column can have: asked for a text in a number's column, a database would fail. */
const heldBy = (type: string, values: readonly string[]): string[] => {
  const largest = LARGEST_OF[type];
  if (largest !== undefined) {
    return values.filter((value) => {
      if (!INTEGER.test(value)) return false;
      const number = BigInt(value);
      return number <= largest && number >= -largest;
    });
  }
  if (type !== 'float' && type !== 'decimal') return [...values];
  return values.filter((value) => String(Number(value)) === value && !/[eNI]/.test(value));
};

const DIGITS = /^\d{1,14}$/;
const GTIN = /^\d{8,14}$/;
const LENGTHS = [8, 12, 13, 14];

/** GTINs of 8, 12, 13 and 14 digits are equal if they differ in leading zeros only. */
const gtinKey = (gtin: string): string =>
  DIGITS.test(gtin) ? gtin.replace(/^0+(?=\d)/, '') : gtin;

/** How a product may have been given a GTIN, with or without its leading zeros. */
const spellings = (gtin: string): string[] => {
  if (!GTIN.test(gtin)) return [gtin];
  const key = gtinKey(gtin);
  const padded = LENGTHS.filter((length) => length >= key.length).map((length) =>
    key.padStart(length, '0')
  );
  return [...new Set([gtin, key, ...padded])];
};

/** A GTIN that lost its leading zeros in a number, or a spreadsheet, as it is printed on the goods. */
export const fullGtin = (gtin: string | null): string | null =>
  gtin !== null && DIGITS.test(gtin) ? gtin.padStart(8, '0') : gtin;

export const isSameGtin = (named: string, ofProduct: string): boolean =>
  named === ofProduct || (GTIN.test(named) && gtinKey(named) === gtinKey(ofProduct));

const text = (value: unknown): string | null =>
  (typeof value === 'string' && value !== '') || typeof value === 'number' ? String(value) : null;

const numberOrNull = (value: unknown): number | null => {
  if (value === null || value === undefined || value === '') return null;
  const number = Number(value);
  return Number.isFinite(number) ? number : null;
};

/** Rows of documents by id; `lock` locks them until the transaction ends. Lock order: products, items, levels. */
export const readProductRows = async (
  db: Db,
  app: App,
  documents: readonly string[],
  { lock = false }: { lock?: boolean } = {}
): Promise<ProductRow[]> => {
  const mapping = mappingOf(app);
  if (!mapping || documents.length === 0) return [];
  const { tableName } = app.strapi.db.metadata.get(mapping.contentType);
  const named = (name: string | undefined): string | null =>
    name === undefined ? null : columnOf(app, mapping, name).column;
  const sku = named(mapping.sku);
  const gtin = named(mapping.gtin);
  const quantity = named(mapping.quantity);
  const drafts = app.strapi.contentTypes[mapping.contentType]?.options?.draftAndPublish === true;
  const locale = isLocalized(app.strapi, mapping.contentType)
    ? await defaultLocale(app.strapi)
    : null;
  const rows: ProductRow[] = [];
  for (const some of inChunks([...new Set(documents)])) {
    const query = db.table(tableName).select('id', 'document_id').orderBy('id');
    if (lock) {
      const ids: number[] = await db.table(tableName).whereIn('document_id', some).pluck('id');
      if (ids.length === 0) continue;
      // By their ids: in another index MySQL also locks what lies between its entries.
      query.whereIn('id', ids);
    } else query.whereIn('document_id', some);
    for (const column of [sku, gtin, quantity]) if (column !== null) query.select(column);
    if (drafts) query.select('published_at');
    if (locale !== null) query.select('locale');
    const found = (await (lock ? query.forUpdate() : query)) as Record<string, unknown>[];
    for (const row of found) {
      rows.push({
        id: Number(row.id),
        document: String(row.document_id),
        isPublished: !drafts || (row.published_at ?? null) !== null,
        isDefault: locale === null || row.locale === locale,
        sku: sku === null ? null : text(row[sku]),
        gtin: gtin === null ? null : text(row[gtin]),
        quantity: quantity === null ? null : numberOrNull(row[quantity]),
      });
    }
  }
  return rows;
};

/** The products of rows. The row of the default language decides, then the published one, then the oldest. */
export const productsOf = (rows: readonly ProductRow[]): Map<string, Product> => {
  const documents = new Map<string, ProductRow[]>();
  for (const row of rows) {
    documents.set(row.document, [...(documents.get(row.document) ?? []), row]);
  }
  const products = new Map<string, Product>();
  for (const [document, own] of documents) {
    own.sort(
      (a, b) =>
        Number(b.isDefault) - Number(a.isDefault) ||
        Number(b.isPublished) - Number(a.isPublished) ||
        a.id - b.id
    );
    const [head] = own;
    if (!head?.sku) continue;
    const { sku, gtin } = head;
    const speaking = own.filter(({ isPublished }) => isPublished === head.isPublished);
    const quantity = speaking.find((row) => row.quantity !== null)?.quantity ?? null;
    products.set(document, { document, sku, gtin, quantity, rows: own });
  }
  return products;
};

/** The products of which some row has one of these SKUs, or one of these GTINs. */
const productsNamed = async (
  db: Db,
  app: App,
  { skus, gtins }: { skus: readonly string[]; gtins: readonly string[] },
  options: { lock?: boolean }
): Promise<Product[]> => {
  const mapping = mappingOf(app);
  if (!mapping) return [];
  const { tableName } = app.strapi.db.metadata.get(mapping.contentType);
  const find = (name: string, values: readonly string[]): Promise<{ document_id: string }[]> => {
    const { column, type } = columnOf(app, mapping, name);
    return findInChunks(heldBy(type, values), (some) =>
      db.table(tableName).distinct('document_id').whereIn(column, some)
    );
  };
  const named = [
    ...(await find(mapping.sku, skus)),
    ...(mapping.gtin ? await find(mapping.gtin, gtins.flatMap(spellings)) : []),
  ];
  const documents = named.map(({ document_id: document }) => document);
  return [...productsOf(await readProductRows(db, app, documents, options)).values()];
};

/** Products by SKU (byte for byte) or GTIN, in the current transaction. Draft names count once published. */
export const findProducts = async (
  db: Db,
  app: App,
  skus: readonly string[],
  gtins: readonly string[],
  options: { lock?: boolean } = {}
): Promise<Product[]> => {
  const wanted = new Set(skus);
  return (await productsNamed(db, app, { skus, gtins }, options)).filter(
    ({ sku, gtin }) =>
      wanted.has(sku) || (gtin !== null && gtins.some((named) => isSameGtin(named, gtin)))
  );
};

/**
 * Locks products that have one of these SKUs, or had it at the transaction's first read; before their items are locked.
 * @returns them by their current SKU
 */
export const lockProducts = async (tx: Tx, app: App, skus: readonly string[]) => {
  const bySku = new Map<string, Product[]>();
  for (const product of await productsNamed(tx, app, { skus, gtins: [] }, { lock: true })) {
    bySku.set(product.sku, [...(bySku.get(product.sku) ?? []), product]);
  }
  return bySku;
};

const SAFE = Number.MAX_SAFE_INTEGER;

const LARGEST_NUMBER: Record<string, number> = {
  integer: 2_147_483_647,
  // The host's column has ten digits, two of them after the point.
  decimal: 99_999_999,
};

export const fitting = (app: App, quantity: number): number => {
  const mapping = mappingOf(app);
  const type = mapping?.quantity ? columnOf(app, mapping, mapping.quantity).type : 'float';
  const largest = LARGEST_NUMBER[type] ?? SAFE;
  return Math.max(-largest, Math.min(largest, quantity));
};

/** A product's number as whole pieces that the ledger can count with. */
export const wholePieces = (quantity: number | null): number =>
  Math.max(-SAFE, Math.min(SAFE, Math.trunc(quantity ?? 0)));

/** An item's facts from the site's own product type. */
export interface ProductFacts {
  name: string | null;
  /** Minor units; null if it has none that its currency could count. */
  price: number | null;
  /** ISO 4217; null without a price. */
  currency: string | null;
}

type ProductEntry = Record<string, unknown> & { id: number | string };

const CURRENCY = /^[A-Z]{3}$/;

/** The mapped fields as text: what a catalogue was made of. */
export const productFieldsText = (app: App): string => {
  const mapping = app.options.stock;
  return JSON.stringify([mapping?.contentType, mapping?.name, mapping?.price, mapping?.currency]);
};

const PLAIN_DECIMAL = /^-?\d+(?:\.\d+)?$/;

/** A price in major units as an integer in minor units, rounded half up; null if it is not a price. */
export const toMinorUnits = (value: unknown, currency: string): number | null => {
  if (typeof value !== 'number' && typeof value !== 'string') return null;
  const text = String(value).trim();
  if (!PLAIN_DECIMAL.test(text)) return null;
  // Shifted in the decimal text: a product of doubles would round 1.005 down.
  const minor = Math.round(Number(`${text}e${minorDigits(currency)}`));
  return Number.isSafeInteger(minor) ? minor : null;
};

/** One entry per SKU (byte for byte), of its drafts and languages: default language, then published, then oldest. */
const entriesBySku = async (app: App, mapping: ProductMapping, skus: readonly string[]) => {
  const { contentType: uid, sku: field } = mapping;
  const locale = isLocalized(app.strapi, uid) ? await defaultLocale(app.strapi) : null;
  const weightOf = (entry: ProductEntry): number =>
    2 * Number(entry.locale === locale) + Number(Boolean(entry.publishedAt));
  const entries = (await findInChunks(heldBy(columnOf(app, mapping, field).type, skus), (some) =>
    app.strapi.db.query(uid).findMany({ where: { [field]: { $in: some } } })
  )) as ProductEntry[];
  // The last one of a key stays.
  entries.sort((a, b) => weightOf(a) - weightOf(b) || Number(b.id) - Number(a.id));
  return new Map(entries.map((entry) => [String(entry[field]), entry]));
};

/** Names and prices of the site's own products, by SKU; empty if the site maps neither. */
export const findProductFacts = async (
  app: App,
  skus: readonly string[]
): Promise<Map<string, ProductFacts>> => {
  const mapping = mappingOf(app);
  if (!mapping || (mapping.name === undefined && mapping.price === undefined)) return new Map();
  const { contentType, name, price, currency } = mapping;
  const { attributes } = app.strapi.contentTypes[contentType] ?? { attributes: {} };
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
  const entries = await entriesBySku(app, mapping, skus);
  return new Map([...entries].map(([sku, entry]) => [sku, factsOf(entry)]));
};

/** The site's own product that an item is, by its SKU; null if there is none. */
export const linkedProduct = async (app: App, sku: string): Promise<LinkedProduct | null> => {
  const mapping = mappingOf(app);
  const product = mapping && (await entriesBySku(app, mapping, [sku])).get(sku);
  if (!product) return null;
  const label = mapping.name === undefined ? null : product[mapping.name];
  return {
    content_type: mapping.contentType,
    document_id: String(product.documentId ?? product.id),
    label: typeof label === 'string' && label !== '' ? label : sku,
  };
};

const NUMERIC = new Set(['integer', 'biginteger', 'float', 'decimal']);

/** Checks the `stock` option against content types; throws an Error that names what is wrong and stops the boot. */
export const checkProductMapping = (app: App): void => {
  const mapping = mappingOf(app);
  if (!mapping) return;
  const wrong = (part: string, why: string, possible: readonly string[]): Error =>
    new Error(
      `The options of the plugin switchboard (config/plugins) are wrong:\n  switchboard.stock.${part}: ` +
        `${why}. Possible: ${possible.join(', ') || 'none'}.`
    );
  const type = app.strapi.contentTypes[mapping.contentType];
  if (!type) {
    const possible = Object.keys(app.strapi.contentTypes).filter((uid) => uid.startsWith('api::'));
    throw wrong('contentType', `there is no content type ${mapping.contentType}`, possible);
  }
  for (const part of ['sku', 'gtin', 'quantity', 'name', 'price', 'currency'] as const) {
    const name = mapping[part];
    if (name === undefined) continue;
    const attribute = type.attributes[name];
    // A mapped currency may be one itself, and not the name of an attribute.
    if (part === 'currency' && !attribute && CURRENCY.test(name)) continue;
    const isNumber = part === 'quantity' || part === 'price';
    if (attribute && (!isNumber || NUMERIC.has(attribute.type))) continue;
    const missing = `${mapping.contentType} has no ${isNumber ? 'numeric ' : ''}attribute ${name}`;
    throw wrong(part, missing, Object.keys(type.attributes));
  }
};

const own = new AsyncLocalStorage<true>();

export const isOwnWrite = (): boolean => own.getStore() === true;

/** Sets a number in product rows that differ. Own write tracking skips it; the site's lifecycles see it. */
export const setProductNumbers = async (app: App, rows: readonly ProductRow[], value: number) => {
  const mapping = mappingOf(app);
  const others = rows.flatMap(({ id, quantity }) => (quantity === value ? [] : [id]));
  if (!mapping?.quantity || others.length === 0) return;
  const data = { [mapping.quantity]: value };
  await own.run(true, () =>
    app.strapi.db.query(mapping.contentType).updateMany({ where: { id: { $in: others } }, data })
  );
};

/**
 * Locks items whose stock is written to products, and the products first; lock order: products, items, levels.
 * Concurrent transactions must not sum one item's locations: each would miss the other's change. Returns the items with
 * products and totals over all locations; no total without a level or product.
 */
const lockStock = async (tx: Tx, app: App, items: readonly number[]) => {
  const ids = [...new Set(items)].sort((a, b) => a - b);
  const read = (lock: boolean) =>
    findInChunks<Pick<ItemRow, 'id' | 'sku'>>(ids, (some) => {
      const query = tx.table(ITEMS_TABLE).select('id', 'sku').whereIn('id', some).orderBy('id');
      return lock ? query.forUpdate() : query;
    });
  const skus = new Set((await read(false)).map(({ sku }) => sku));
  const first = await lockProducts(tx, app, [...skus]);
  const locked = await read(true);
  const isRenamed = locked.some(({ sku }) => !skus.has(sku));
  for (const { sku } of locked) skus.add(sku);
  const products = isRenamed ? await lockProducts(tx, app, [...skus]) : first;
  const itemIds = locked.filter(({ sku }) => products.has(sku)).map(({ id }) => Number(id));
  // Added up here: MySQL locks no rows that are grouped.
  const rows = await findInChunks<Pick<LevelRow, 'item_id' | 'quantity'>>(itemIds, (some) =>
    tx.latest(tx.table(LEVELS_TABLE).select('item_id', 'quantity').whereIn('item_id', some))
  );
  const totals = new Map<number, number>();
  for (const { item_id: id, quantity } of rows) {
    totals.set(Number(id), (totals.get(Number(id)) ?? 0) + Number(quantity));
  }
  return locked.map(({ id, sku }) => ({
    item: Number(id),
    products: products.get(sku) ?? [],
    total: totals.get(Number(id)),
  }));
};

/** Locks items and products (`lockStock`); returns product less ledger quantity at the default location. */
export const lockMappedItems = async (
  tx: Tx,
  app: App,
  items: readonly number[]
): Promise<{ item: number; location: number; quantity: number }[]> => {
  if (!mappingOf(app)?.quantity || items.length === 0) return [];
  const drifts = (await lockStock(tx, app, items)).flatMap(({ item, products, total }) => {
    // An item without a level has nothing that a product could differ from.
    if (total === undefined) return [];
    const expected = fitting(app, total);
    const numbers = products.flatMap(({ quantity }) =>
      quantity === null ? [] : [wholePieces(quantity)]
    );
    const other = numbers.find((number) => number !== expected);
    return other === undefined ? [] : [{ item, quantity: other - expected }];
  });
  if (drifts.length === 0) return [];
  const location = Number((await defaultLocation(tx)).id);
  return drifts.map((drift) => ({ ...drift, location }));
};

/** Writes item totals over all locations to products, drafts and languages alike, in the movements' transaction. */
export const writeThrough = async (tx: Tx, app: App, changed: readonly number[]): Promise<void> => {
  if (!mappingOf(app)?.quantity || changed.length === 0) return;
  for (const { products, total = 0 } of await lockStock(tx, app, changed)) {
    const rows = products.flatMap((product) => product.rows);
    await setProductNumbers(app, rows, fitting(app, total));
  }
};
