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

/** Removes webhooks and what was sent to them. */
const remove = async (strapi, { ids }) => {
  const knex = strapi.db.connection;
  await knex('switchboard_webhooks').whereIn('id', ids).update({ active: false });
  await knex('switchboard_deliveries').whereIn('webhook_id', ids).delete();
  await knex('switchboard_webhooks').whereIn('id', ids).delete();
};

module.exports = ({ strapi, args: { op, ...rest } }) => ({ create, remove })[op](strapi, rest);
