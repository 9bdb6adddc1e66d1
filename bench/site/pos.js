'use strict';

const SCOPES = ['sale:write', 'refund:write', 'inventory:write'];

/** Numbers 0 … size-1, made by the database. */
const series = (strapi, size) => {
  if (strapi.db.dialect.client === 'postgres') {
    return `SELECT n FROM generate_series(0, ${size - 1}) AS s(n)`;
  }
  const digits =
    'SELECT 0 AS d' + Array.from({ length: 9 }, (_, d) => ` UNION ALL SELECT ${d + 1}`).join('');
  const places = Math.max(1, Math.ceil(Math.log10(size)));
  const aliases = Array.from({ length: places }, (_, place) => `d${place}`);
  const sum = aliases.map((alias, place) => `${alias}.d * ${10 ** place}`).join(' + ');
  return `SELECT ${sum} AS n FROM ${aliases.map((alias) => `(${digits}) ${alias}`).join(', ')}`;
};

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
  ({ connection, fill, drain })[op](strapi, rest);
