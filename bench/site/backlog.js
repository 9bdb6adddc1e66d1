'use strict';

const v8 = require('node:v8');
const vm = require('node:vm');

const { dataOf } = require('./deliveries');

const CHUNK = 200;

/** Queues events and does not wait for them. */
const fill = async (strapi, { event, count }) => {
  const publisher = strapi.service('plugin::switchboard.publisher');
  for (let start = 0; start < count; start += CHUNK) {
    const size = Math.min(CHUNK, count - start);
    await publisher.publish(Array.from({ length: size }, (_, at) => ({ event, data: dataOf(at) })));
  }
};

/** How many deliveries of these webhooks wait. */
const left = async (strapi, { webhookIds }) => {
  const [{ waiting }] = await strapi.db
    .connection('switchboard_delivery_queue')
    .whereIn('group_id', webhookIds)
    .count({ waiting: '*' });
  return Number(waiting);
};

/** Forgets what waits; what is being recorded may stand in the way for a moment. */
const drop = async (strapi, { webhookIds }, tries = 5) => {
  try {
    const { connection } = strapi.db;
    await connection('switchboard_delivery_queue').whereIn('group_id', webhookIds).delete();
    await connection('switchboard_deliveries').whereIn('webhook_id', webhookIds).delete();
  } catch (error) {
    if (tries <= 1) throw error;
    await drop(strapi, { webhookIds }, tries - 1);
  }
};

/** Collects what filling left: else the site would, at some moment of what is measured. */
const tidy = () => {
  v8.setFlagsFromString('--expose-gc');
  vm.runInNewContext('gc')();
};

module.exports = ({ strapi, args: { op, ...rest } }) =>
  ({ fill, left, drop, tidy })[op](strapi, rest);
