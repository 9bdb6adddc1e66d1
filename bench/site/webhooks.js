'use strict';

const service = (strapi) => strapi.service('plugin::switchboard.webhooks');

/** Makes `count` webhooks for an event. @returns their ids. */
const create = async (strapi, { url, event, count = 1 }) => {
  const ids = [];
  for (let at = 0; at < count; at += 1) {
    const input = { name: `bench ${at}`, url: `${url}${at}`, events: [event], active: true };
    ids.push((await service(strapi).create(input)).id);
  }
  return ids;
};

/** Makes many for an event, quickly: one by the service, the others as its copies. @returns their ids. */
const copy = async (strapi, { url, event, count }) => {
  const knex = strapi.db.connection;
  const [first] = await create(strapi, { url, event });
  const row = await knex('switchboard_webhooks').where({ id: first }).first();
  const { id: _id, indexed_id: _indexed, ...values } = row;
  const copies = Array.from({ length: count - 1 }, (_none, at) => ({
    ...values,
    document_id: `bench${String(at).padStart(19, '0')}`,
  }));
  await knex.batchInsert('switchboard_webhooks', copies, 500);
  // One more, made as usual, brings what came before it into the index.
  const [last] = await create(strapi, { url, event });
  return knex('switchboard_webhooks').whereBetween('id', [first, last]).pluck('id');
};

const AT_ONCE = 500;

/** Removes webhooks and what was sent to them. */
const remove = async (strapi, { ids }) => {
  const knex = strapi.db.connection;
  for (let at = 0; at < ids.length; at += AT_ONCE) {
    const some = ids.slice(at, at + AT_ONCE);
    await knex('switchboard_webhooks').whereIn('id', some).update({ active: false });
    await knex('switchboard_deliveries').whereIn('webhook_id', some).delete();
    await knex('switchboard_subscriptions').whereIn('webhook_id', some).delete();
    await knex('switchboard_webhooks').whereIn('id', some).delete();
  }
};

module.exports = ({ strapi, args: { op, ...rest } }) =>
  ({ create, copy, remove })[op](strapi, rest);
