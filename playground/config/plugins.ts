import type { Core } from '@strapi/strapi';
import path from 'node:path';

// The server runs this file from dist/config; the build of the admin panel reads it where it is.
const isBuilt = path.basename(path.dirname(__dirname)) === 'dist';
const SITE = path.resolve(__dirname, isBuilt ? '../..' : '..');

export default ({ env }: Core.Config.Shared.ConfigParams) => ({
  switchboard: {
    enabled: true,
    // A site that installed the package from npm leaves this line out.
    resolve: path.resolve(SITE, '..'),
    // Every option is optional. Those that are commented out show their defaults; docs/options.md
    // describes them all. A wrong one stops the boot with a message that names it.
    config: {
      webhooks: {
        // The receiver and the till of the playground live on this computer. A site on the internet
        // leaves this out: addresses of private networks are then refused.
        allowPrivateNetworks: ['127.0.0.1/32', '::1/128'],
        // concurrency: 64,             // attempts under way at once on this node
        // concurrencyPerWebhook: 16,   // … to one webhook
        // timeoutMs: 10_000,           // one deadline from DNS to the last byte of the answer
        // retryScheduleSeconds: [60, 300, 1800, 7200, 21_600, 43_200],
        // disableAfterFailures: 20,    // failed deliveries in a row
        // logDays: 30,                 // how long finished deliveries are kept
        // dispatch: true,              // false: this node only serves, another one sends
        // pollSeconds: 5,
        ...env.json('SWITCHBOARD_WEBHOOKS', {}),
      },
      pos: {
        // ratePerMinute: 300,          // records a connection may send
        // failedAuthPerMinute: 30,     // failed authentications from one address
        // maxBodyBytes: 262_144,
        // timestampWindowSeconds: 300,
        // refundGraceHours: 24,        // how long a refund waits for its sale
        // process: true,               // false: this node only accepts, another one applies
        ...env.json('SWITCHBOARD_POS', {}),
      },
      // `npm start -- --engine bullmq`: nodes share their work over Redis.
      scheduler: env.json('SWITCHBOARD_SCHEDULER', {}),
      // sources: { contact: { contentType: 'api::lead.lead', fields: { email: 'mail' } } },
      // Whoever sends an inquiry becomes a contact, and `form.submitted` goes out.
      forms: [
        {
          contentType: 'api::inquiry.inquiry',
          title: 'Inquiry',
          fields: { email: 'mail', first_name: 'firstName' },
        },
      ],
      // The e-mail events of a provider; `npm run demo:events` plays the provider with this key.
      email: { mailgun: { signingKey: env('MAILGUN_SIGNING_KEY', 'playground-signing-key') } },
      // stock: { contentType: 'api::product.product', sku: 'sku', quantity: 'stock' },
    },
  },

  // A plugin of this site that uses every extension hook: src/plugins/hooks-demo.
  'hooks-demo': {
    enabled: env.bool('HOOKS_DEMO', true),
    resolve: path.join(SITE, 'src/plugins/hooks-demo'),
  },

  'users-permissions': { config: { jwtSecret: env('JWT_SECRET') } },
});
