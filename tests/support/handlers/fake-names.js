'use strict';

/**
 * A site's setup file: names resolve to what a test put into `dns.names` (`node:dns/promises`) and
 * to nothing else (name servers are never asked), `state.allowLocal` answers `service_crm_webhook_allow_local`, and
 * `state.rewriteTo` is the URL that a request-args handler makes of any.
 */
const dns = require('node:dns/promises');

const system = dns.lookup;
dns.names = {};
dns.lookup = async (host, options) => {
  const name = host.replace(/\.$/, '');
  if (name === 'localhost') return system(name, options);
  const addresses = dns.names[name];
  if (!addresses) throw Object.assign(new Error(`no such name ${name}`), { code: 'ENOTFOUND' });
  return addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
};

for (const family of [4, 6]) {
  dns.Resolver.prototype[`resolve${family}`] = async (host) => {
    throw Object.assign(new Error(`no such name ${host}`), { code: 'ENOTFOUND' });
  };
}

module.exports = {
  bootstrap({ strapi }) {
    const state = () => global.switchboardTestState ?? {};
    strapi
      .hook('service_crm_webhook_allow_local')
      .register((allowed) => allowed || state().allowLocal === true);
    strapi.hook('service_crm_webhook_request_args').register((value) => {
      const { rewriteTo } = state();
      return rewriteTo ? { ...value, args: { ...value.args, url: rewriteTo } } : value;
    });
  },
};
