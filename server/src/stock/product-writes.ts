import {
  aroundWrites,
  findInChunks,
  giveDocumentId,
  type HostWrite,
  inChunks,
  writtenRows,
} from '../database/written-rows';
import { inTurn } from '../database/transactions';
import { fieldError } from '../http/validation';
import { writeAndPublish } from './by-hand';
import { claimSkus, markChanged, retireSku } from './catalogue';
import { type ItemRow, ITEMS_TABLE, skuDigest } from './tables';
import { gtinColumns, type ItemName, notifyItemsKnown } from './items';
import { Ledger } from './ledger';
import { defaultLocation } from './locations';
import {
  findProducts,
  fullGtin,
  isOwnWrite,
  lockMappedItems,
  mappingOf,
  type Product,
  type ProductRow,
  productsOf,
  readProductRows,
  setProductNumbers,
  writeThrough,
} from './products';
import type { App } from '../app';
import type { Tx } from '../database/db';

/**
 * Writes of the site to its products, by any means of the host: levels follow quantities, items follow codes, and the
 * catalogue both, in the same transaction. SQL changes are found at the item's next movement (`lockMappedItems`).
 */

type Data = Record<string, unknown>;

/** The products of one write, before and after; by document. */
interface Written {
  before: ReadonlyMap<string, Product>;
  after: ReadonlyMap<string, Product>;
  /** Rows before the write, by id. */
  rows: ReadonlyMap<number, ProductRow>;
}

const itemsBySku = async (tx: Tx, skus: Iterable<string>): Promise<Map<string, ItemRow>> => {
  const rows = await findInChunks<ItemRow, string>([...skus].map(skuDigest), (some) =>
    tx.latest(tx.table(ITEMS_TABLE).whereIn('sku_digest', some))
  );
  return new Map(rows.map((row) => [row.sku, row]));
};

const updateItems = async (tx: Tx, ids: readonly number[], columns: Partial<ItemRow>) => {
  for (const some of inChunks(ids)) {
    await tx
      .table(ITEMS_TABLE)
      .whereIn('id', some)
      .update({ ...columns, updated_at: Date.now() });
  }
};

/** Codes that a product had and that no product has now. */
const lostCodes = async (tx: Tx, app: App, { before, after }: Written): Promise<Set<string>> => {
  const lost = new Set<string>();
  for (const [document, { sku }] of before) {
    if (after.get(document)?.sku !== sku) lost.add(sku);
  }
  if (lost.size === 0) return lost;
  for (const { sku } of await findProducts(tx, app, [...lost], [])) lost.delete(sku);
  return lost;
};

const digestOrNull = (gtin: string | null): string | null =>
  gtinColumns(fullGtin(gtin)).gtin_digest;

/** True if an item takes its product's GTIN from now on. A manually entered one stays. */
const takesGtin = (item: ItemRow, { gtin }: Product, before: Product | undefined): boolean => {
  if (item.product_gone) return gtin !== null;
  if (!before) return gtin !== null && item.gtin === null;
  return before.gtin !== gtin && (item.gtin_digest ?? null) === digestOrNull(before.gtin);
};

/** Takes GTINs that products have from the items of products that are gone: they are on other goods now. */
const releaseGtins = async (tx: Tx, products: readonly Product[]): Promise<number[]> => {
  const owners = new Map(products.map(({ sku, gtin }) => [digestOrNull(gtin), sku]));
  owners.delete(null);
  const rows = await findInChunks<ItemRow, string | null>(owners.keys(), (some) =>
    tx.table(ITEMS_TABLE).whereIn('gtin_digest', some).where({ product_gone: true })
  );
  const released = rows.flatMap(({ id, sku, gtin_digest: digest }) =>
    owners.get(digest) === sku ? [] : [Number(id)]
  );
  await updateItems(tx, released, gtinColumns(null));
  return released;
};

/** Updates items to the GTINs of their products. @returns further items that were changed */
const followGtins = async (
  tx: Tx,
  app: App,
  { before, after }: Written,
  items: ReadonlyMap<string, ItemRow>
): Promise<number[]> => {
  if (!mappingOf(app)?.gtin) return [];
  const learnt: Product[] = [];
  for (const [document, product] of after) {
    const known = before.get(document);
    const item = items.get(product.sku);
    if (item && takesGtin(item, product, known)) {
      await updateItems(tx, [Number(item.id)], gtinColumns(fullGtin(product.gtin)));
    }
    if (known?.gtin !== product.gtin) learnt.push(product);
  }
  return releaseGtins(tx, learnt);
};

/** Updates items to their products' codes: renamed unless another item has the code; not for sale without a product. */
const followCodes = async (tx: Tx, app: App, written: Written): Promise<void> => {
  const { before, after } = written;
  const lost = await lostCodes(tx, app, written);
  const items = await itemsBySku(tx, [...lost, ...[...after.values()].map(({ sku }) => sku)]);
  for (const [document, { sku: from }] of before) {
    const to = after.get(document)?.sku;
    const item = items.get(from);
    if (to === undefined || to === from || !item || !lost.has(from) || items.has(to)) continue;
    await retireSku(tx, from);
    await claimSkus(tx, [to]);
    await updateItems(tx, [Number(item.id)], { sku: to, sku_digest: skuDigest(to) });
    items.delete(from);
    items.set(to, { ...item, sku: to });
    lost.delete(from);
  }
  const released = await followGtins(tx, app, written, items);
  const idsOf = (skus: Iterable<string>, isGone: boolean): number[] =>
    [...skus].flatMap((sku) => {
      const item = items.get(sku);
      return item && Boolean(item.product_gone) !== isGone ? [Number(item.id)] : [];
    });
  await updateItems(tx, idsOf(lost, true), { product_gone: true });
  const known = new Set([...after.values()].map(({ sku }) => sku));
  await updateItems(tx, idsOf(known, false), { product_gone: false });
  await markChanged(tx, [...[...items.values()].map(({ id }) => Number(id)), ...released]);
};

/** The quantity that a write has set for a product; null if none. */
const numberSaid = (app: App, product: Product, { rows }: Written): number | null => {
  const mapping = mappingOf(app);
  if (!mapping?.quantity) return null;
  const known = product.rows.filter(({ id }) => rows.has(id));
  const changed = known.find(
    ({ id, quantity }) => quantity !== null && quantity !== rows.get(id)?.quantity
  );
  if (changed) return changed.quantity;
  const made = product.rows.filter(({ id, quantity }) => !rows.has(id) && quantity !== null);
  if (known.length > 0) {
    // A copy of the draft repeats its quantity; a new language's, or an older reading's, is ignored.
    const copy = made.find(({ quantity }) => known.some((row) => row.quantity === quantity));
    return copy?.quantity ?? null;
  }
  const attribute = app.strapi.contentTypes[mapping.contentType]?.attributes[mapping.quantity] as
    { default?: unknown } | undefined;
  const given = made.find(({ quantity }) => quantity !== Number(attribute?.default ?? Number.NaN));
  return given?.quantity ?? null;
};

const REFUSED =
  'tills keep the stock of this product; adjust it in the admin panel under CRM > Stock';

/** Takes the numbers of a write into the ledger, and those of the ledger into the products. */
const followNumbers = async (tx: Tx, app: App, written: Written): Promise<void> => {
  const mapping = mappingOf(app);
  if (!mapping?.quantity) return;
  const products = [...written.after.values()];
  const skus = products.map(({ sku }) => sku);
  const items = await itemsBySku(tx, skus);
  const said = new Set<number>();
  const silent = new Set<number>();
  for (const product of products) {
    const id = Number(items.get(product.sku)?.id ?? 0);
    if (id === 0) continue;
    const number = numberSaid(app, product, written);
    if (number === null) {
      if (!said.has(id)) silent.add(id);
      continue;
    }
    said.add(id);
    silent.delete(id);
    await setProductNumbers(app, product.rows, number);
  }
  if (said.size > 0) {
    if (app.options.stock?.onProductWrite === 'refuse') {
      const drifts = await lockMappedItems(tx, app, [...said]);
      if (drifts.length > 0) throw fieldError(mapping.quantity, REFUSED);
    }
    const location = Number((await defaultLocation(tx)).id);
    const ledger = new Ledger(app, tx);
    await ledger.lock([...said].map((item) => ({ item, location })));
    await writeAndPublish(tx, app, ledger);
  }
  await writeThrough(tx, app, [...said, ...silent]);
};

/** New names that waiting lines may have. */
const namesLearnt = ({ before, after }: Written): ItemName[] =>
  [...after].flatMap(([document, { sku, gtin }]) => {
    const known = before.get(document);
    if (known?.sku === sku && known.gtin === gtin) return [];
    return [...new Set([gtin, fullGtin(gtin)])].map((one) => ({ sku, gtin: one }));
  });

/** The documents of the rows that the host is going to change, locked; `params` are bound to them. */
const changedDocuments = async (app: App, { uid, method, params }: Required<HostWrite>) => {
  const action = `before${method[0]?.toUpperCase()}${method.slice(1)}`;
  const rows = await writtenRows(app.strapi, { action, model: { uid }, params });
  return [...new Set(rows.map(({ documentId }) => documentId))];
};

/** Updates stock, items and catalogue with each write to the mapped products, in its transaction. */
export const watchProductWrites = (app: App): void => {
  const mapping = mappingOf(app);
  if (!mapping) return;
  const { contentType: uid } = mapping;
  const { name, price, currency } = app.options.stock ?? {};
  const { sku, gtin, quantity } = mapping;
  const fields = new Set([sku, gtin, quantity, name, price, currency, 'publishedAt', 'documentId']);

  const follow = async (
    { method, params = {} }: HostWrite,
    run: (params: Data) => Promise<unknown>
  ): Promise<unknown> => {
    const data = params.data as Data | Data[] | undefined;
    const isMade = method === 'create' || method === 'createMany';
    if (isMade && typeof data !== 'object') return run(params);
    if (
      (method === 'update' || method === 'updateMany') &&
      !Object.keys(data ?? {}).some((key) => fields.has(key))
    ) {
      return run(params);
    }
    const tracked = async (tx: Tx): Promise<unknown> => {
      // The caller's own data stay unchanged.
      const made = isMade ? [data as Data | Data[]].flat().map((one) => ({ ...one })) : [];
      const input = { ...params, ...(isMade && { data: Array.isArray(data) ? made : made[0] }) };
      const documents = isMade
        ? made.map((one) =>
            one.documentId ? String(one.documentId) : giveDocumentId(app.strapi, uid, one)
          )
        : await changedDocuments(app, { uid, method, params: input });
      // Before the write: a sale that makes or moves their items locks them in the same order.
      const rows = await readProductRows(tx, app, documents, { lock: true });
      const result = await run(input);
      const left = await readProductRows(tx, app, documents, { lock: true });
      const written: Written = {
        before: productsOf(rows),
        after: productsOf(left),
        rows: new Map(rows.map((row) => [row.id, row])),
      };
      await followCodes(tx, app, written);
      await followNumbers(tx, app, written);
      const names = namesLearnt(written);
      if (names.length > 0) await notifyItemsKnown(app, names);
      return result;
    };
    // Concurrent writes in one transaction have their own before and after each.
    return app.db.transaction((tx) => inTurn(app.strapi, () => tracked(tx)));
  };

  aroundWrites(app.strapi, (write, run) =>
    write.uid !== uid || isOwnWrite() ? run() : follow(write, run)
  );
};
