'use strict';

const { pluginModule } = require('./plugin-module');

// Two types that differ in their name alone: the options map the first one to contacts, nothing
// knows the second. What a write to the first takes longer is what the plugin's sources cost.
const twin = (singularName) => ({
  schema: {
    kind: 'collectionType',
    collectionName: singularName.replaceAll('-', '_'),
    info: { singularName, pluralName: `${singularName}s`, displayName: singularName },
    options: { draftAndPublish: false },
    attributes: {
      email: { type: 'email', maxLength: 254 },
      first_name: { type: 'string', maxLength: 255 },
      last_name: { type: 'string', maxLength: 255 },
      phone: { type: 'string', maxLength: 64 },
      job_title: { type: 'string', maxLength: 255 },
      contact_status: { type: 'string' },
      lifecycle_stage: { type: 'string' },
      address: { type: 'json' },
      score: { type: 'integer', default: 0 },
      source: { type: 'string' },
      subscribed_at: { type: 'datetime' },
      fields: { type: 'json' },
      owner: { type: 'relation', relation: 'oneToOne', target: 'admin::user' },
    },
  },
});

const QUEUES = ['bench_small', 'bench_large'];
const EVENTS = ['bench.event', 'bench.nothing'];

module.exports = {
  async bootstrap({ strapi }) {
    const { ensureTables } = pluginModule('database/tables/plain-tables');
    const { queueTable } = pluginModule('queue/queue');
    // Queues that nobody serves, for claiming from.
    await ensureTables(
      strapi,
      QUEUES.map((name) => queueTable(name, `${name}_due`, {}))
    );
    strapi.hook('service_crm_webhook_events').register((map) => ({
      ...map,
      ...Object.fromEntries(EVENTS.map((name) => [name, { label: name, group: 'Bench' }])),
    }));
  },
  register({ strapi }) {
    for (const name of ['bench-mapped', 'bench-plain']) {
      strapi.get('content-types').add(`api::${name}`, { [name]: twin(name) });
    }
  },
};
