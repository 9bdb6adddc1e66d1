'use strict';

/** Numbers 0 … size-1 as `n`, made by the database. */
module.exports.series = (strapi, size) => {
  const { client } = strapi.db.dialect;
  if (client === 'postgres') return `SELECT n FROM generate_series(0, ${size - 1}) AS s(n)`;
  const digits =
    'SELECT 0 AS d' + Array.from({ length: 9 }, (_, d) => ` UNION ALL SELECT ${d + 1}`).join('');
  const places = Math.max(1, Math.ceil(Math.log10(size)));
  const aliases = Array.from({ length: places }, (_, place) => `d${place}`);
  const sum = aliases.map((alias, place) => `${alias}.d * ${10 ** place}`).join(' + ');
  return `SELECT ${sum} AS n FROM ${aliases.map((alias) => `(${digits}) ${alias}`).join(', ')}`;
};
