'use strict';

// A plugin that comes after all others: it registers its hook handlers late in its bootstrap, the
// site's own code later still, and both write to the CRM while the site is being stopped.
const { setTimeout: sleep } = require('node:timers/promises');

const addHeader = (strapi, name) =>
  strapi.hook('service_crm_webhook_request_args').register(async (value) => ({
    ...value,
    args: { ...value.args, headers: { ...value.args.headers, [name]: 'yes' } },
  }));

const write = (strapi, email) =>
  strapi.db.query('plugin::switchboard.contact').create({ data: { email } });

/** The last write there can be: one that is under way when the database is closed. */
const writeWhileClosing = (strapi, email) => {
  const { client } = strapi.db.connection;
  const close = client.destroy;
  client.destroy = async (...args) => {
    await write(strapi, email);
    return close.apply(client, args);
  };
};

module.exports = {
  register({ strapi }) {
    strapi.get('modules').add('plugin::zz-late', {
      async bootstrap() {
        await sleep(500);
        addHeader(strapi, 'X-Late-Plugin');
      },
      destroy: () => write(strapi, 'plugin-destroy@example.test'),
    });
  },
  async bootstrap({ strapi }) {
    await sleep(500);
    addHeader(strapi, 'X-Late-Site');
  },
  async destroy({ strapi }) {
    await write(strapi, 'site-destroy@example.test');
    writeWhileClosing(strapi, 'closing@example.test');
  },
};
