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

const named = (table, indexes) =>
  indexes.map((index) => ({ ...index, name: `${table}_${index.name}` }));

/** A table of deliveries that no dispatcher serves, for claiming from. */
const queueTable = (name) => {
  const { deliveryType, deliveryTable } = pluginModule('webhooks/tables');
  const { attributes, indexes } = deliveryType.schema;
  const { besides } = deliveryTable;
  const plain = besides.indexes.filter(({ present }) => !present);
  const columns = Object.entries(attributes).filter(([, { type }]) => type !== 'relation');
  return {
    uid: `plugin::switchboard.${name.replaceAll('_', '-')}`,
    singularName: name,
    tableName: name,
    attributes: {
      id: { type: 'increments' },
      document_id: { type: 'string' },
      ...Object.fromEntries(
        columns.map(([key, { type, columnName, columnType }]) => [
          columnName ?? key,
          { type, columnType },
        ])
      ),
      ...besides.attributes,
    },
    indexes: named(name, [{ name: 'document', columns: ['document_id'] }, ...indexes, ...plain]),
  };
};

/** The indexes that the host does not know how to make, of such a table. */
const addSparseIndexes = async (strapi, tableName) => {
  const { ensureTables } = pluginModule('database/tables/plain-tables');
  const { deliveryTable } = pluginModule('webhooks/tables');
  const sparse = deliveryTable.besides.indexes.filter(({ present }) => present);
  await ensureTables(strapi, [{ tableName, attributes: {}, indexes: named(tableName, sparse) }]);
};

const QUEUES = ['bench_small', 'bench_large'];
const EVENTS = ['bench.event', 'bench.nothing'];

module.exports = {
  async bootstrap({ strapi }) {
    for (const name of QUEUES) await addSparseIndexes(strapi, name);
    strapi.hook('service_crm_webhook_events').register((map) => ({
      ...map,
      ...Object.fromEntries(EVENTS.map((name) => [name, { label: name, group: 'Bench' }])),
    }));
  },
  register({ strapi }) {
    for (const name of ['bench-mapped', 'bench-plain']) {
      strapi.get('content-types').add(`api::${name}`, { [name]: twin(name) });
    }
    for (const name of QUEUES) {
      strapi.get('models').add(queueTable(name));
    }
  },
};
