'use strict';

/** Has each attempt say which process made it. */
module.exports = {
  bootstrap({ strapi }) {
    strapi.hook('service_crm_webhook_request_args').register((value) => ({
      ...value,
      args: {
        ...value.args,
        headers: { ...value.args.headers, 'X-Made-By': String(process.pid) },
      },
    }));
  },
};
