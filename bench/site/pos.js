'use strict';

const { pluginModule } = require('./plugin-module');
const { series } = require('./series');

const SCOPES = ['sale:write', 'refund:write', 'inventory:write', 'stock:read'];

/** A live connection. @returns its key and secret. */
const connection = async (strapi) => {
  const service = strapi.service('plugin::switchboard.pos-connections');
  const { id, key, secret } = await service.create({
    name: 'Bench',
    scopes: SCOPES,
    mode: 'live',
    locations: [],
  });
  return { id, key, secret };
};

/** Items named `<prefix>-0` …, and movements of each that happened long ago. */
const fill = async (strapi, { prefix, items, movements }) => {
  const service = strapi.service('plugin::switchboard.stock-items');
  for (let at = 0; at < items; at += 1) {
    const sku = `${prefix}-${at}`;
    await service.createItem({ sku, low_at: 0, opening: [{ quantity: 1_000_000 }] });
  }
  if (movements === 0) return;
  const knex = strapi.db.connection;
  const rows = await knex('switchboard_levels as l')
    .join('switchboard_items as i', 'i.id', 'l.item_id')
    .whereRaw('i.sku LIKE ?', [`${prefix}-%`])
    .select('l.id');
  const first = Math.min(...rows.map(({ id }) => Number(id)));
  const long = Date.now() - 10_000_000_000;
  await knex.raw(
    `INSERT INTO switchboard_movements (level_id, type, at, quantity, effect, quantity_after, created_at)
     SELECT ${first} + n % ${items}, 'sale', ${long} + n, -1, -1, 0, ${long} FROM (${series(strapi, movements)}) numbers`
  );
  const analyze = {
    sqlite: 'ANALYZE',
    postgres: 'ANALYZE',
    mysql: 'ANALYZE TABLE switchboard_movements',
  };
  await knex.raw(analyze[strapi.db.dialect.client]);
};

const FIRST_DAY = Date.UTC(2026, 2, 1);
const QUARTER_MS = 900_000;
/** Thirty days of them. */
const QUARTERS = 30 * 96;
const PRICE = 899;

/**
 * Sales of one item that were accepted and counted over thirty days: the records, each with what the
 * figures have of it, and the figures of quarter hours as counting the records leaves them.
 */
const sell = async (strapi, { records }) => {
  const knex = strapi.db.connection;
  const integer = strapi.db.dialect.client === 'mysql' ? 'SIGNED' : 'BIGINT';
  await fill(strapi, { prefix: 'SOLD', items: 1, movements: 0 });
  const { id: item } = await knex('switchboard_items').where({ sku: 'SOLD-0' }).first('id');
  const counted = JSON.stringify({ c: 'GBP', a: `${PRICE}`, p: 1, i: [[item, `${PRICE}`, 1]] });
  const at = `${FIRST_DAY} + CAST(n % ${QUARTERS} AS ${integer}) * ${QUARTER_MS}`;
  await knex.raw(
    `INSERT INTO switchboard_pos_events (connection_id, kind, mode, state, external_digest,
       flags, settled_flags, stale, occurred_ms, effective_at, received_at, processed_at, counted,
       body, tries)
     SELECT 1, 'sale', 'live', 'applied', CAST(n AS CHAR(20)),
       '[]', '[]', '[]', ${at}, ${at}, ${at}, ${at}, '${counted}', '{}', 0
     FROM (${series(strapi, records)}) numbers WHERE n < ${records}`
  );
  const sums = Array.from({ length: Math.min(QUARTERS, records) }, (_one, index) => {
    const sales = Math.floor(records / QUARTERS) + (index < records % QUARTERS ? 1 : 0);
    return {
      quarter: FIRST_DAY + index * QUARTER_MS,
      connection_id: 1,
      currency: 'GBP',
      sales,
      sales_low: sales * PRICE,
      sales_pieces: sales,
    };
  });
  await knex.batchInsert('switchboard_sales_rollups', sums, 100);
  const ofItem = sums.map((sum) => ({ ...sum, item_id: item }));
  await knex.batchInsert('switchboard_item_rollups', ofItem, 100);
};

const inChunks = async (list, size, work) => {
  for (let start = 0; start < list.length; start += size) {
    await work(list.slice(start, start + size));
  }
};

/** Items with a name, a barcode and a level each, as the catalogue tells them. */
const stock = async (strapi, { items }) => {
  const { markChanged } = pluginModule('stock/catalogue');
  const { gtinDigest, skuDigest } = pluginModule('stock/items');
  const { db } = pluginModule('app').appOf(strapi);
  const knex = strapi.db.connection;
  const at = Date.now();
  const rows = Array.from({ length: items }, (_one, index) => {
    const sku = `SHELF-${index}`;
    const gtin = String(4_000_000_000_000 + index);
    return {
      ...{ sku, sku_digest: skuDigest(sku), gtin, gtin_digest: gtinDigest(gtin) },
      ...{ name: `Item ${index}`, low_at: 0, created_at: at, updated_at: at },
    };
  });
  await inChunks(rows, 1000, (some) => db.retrying((tx) => tx.insert('switchboard_items', some)));
  const { id: location } = await knex('switchboard_locations').first('id');
  const ids = await knex('switchboard_items').where('sku', 'like', 'SHELF-%').pluck('id');
  await inChunks(ids, 1000, (some) =>
    db.retrying(async (tx) => {
      const levels = some.map((id) => ({
        ...{ item_id: id, location_id: location, opening: 7, quantity: 7, updated_at: at },
      }));
      await tx.insert('switchboard_levels', levels);
      await markChanged(tx, some);
    })
  );
  await strapi.cron.jobs.find(({ name }) => name === 'switchboardCatalogue').job.invoke();
};

/** Resolves when nothing is due any more. */
const drain = async (strapi) => {
  for (;;) {
    const row = await strapi.db
      .connection('switchboard_pos_events')
      .where({ state: 'pending' })
      .first('id');
    if (!row) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};

module.exports = ({ strapi, args: { op, ...rest } }) =>
  ({ connection, fill, sell, stock, drain })[op](strapi, rest);
