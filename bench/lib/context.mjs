import path from 'node:path';
import { startReceiver } from './receiver.mjs';
import { support } from './support.mjs';

const SITE_MODULES = path.resolve(import.meta.dirname, '../site');

/** The options under which everything but the row's own subject is out of the way. */
const OPTIONS = {
  sources: { contact: { contentType: 'api::bench-mapped.bench-mapped' } },
  // The POS rows are about the work, not about the fence around it.
  pos: { ratePerMinute: 1_000_000, failedAuthPerMinute: 1_000_000 },
};

/** What a row is given; index.mjs describes it. */
export const createContext = ({ database, rounds }) => {
  const { startSite } = support('site');
  let site;
  let servingSite;
  let receiver;

  const bootSite = (options = {}) =>
    startSite({
      database,
      nodeEnv: 'production',
      setupFiles: [path.join(SITE_MODULES, 'setup.js')],
      env: { LOG_LEVEL: 'warn', STRAPI_LOG_LEVEL: 'warn' },
      ...options,
      options: { ...OPTIONS, ...options.options },
    });

  const context = {
    database,
    rounds,
    startSite: bootSite,
    site() {
      site ??= bootSite();
      return site;
    },
    async inSite(name, args = {}) {
      const running = await context.site();
      return running.control('run', { file: path.join(SITE_MODULES, `${name}.js`), args });
    },
    async inServingSite(name, args = {}) {
      servingSite ??= bootSite({ options: { webhooks: { dispatch: false } }, accounts: false });
      const running = await servingSite;
      return running.control('run', { file: path.join(SITE_MODULES, `${name}.js`), args });
    },
    async inSiteWith(options, work) {
      const other = await bootSite({ options, accounts: false });
      const file = (name) => path.join(SITE_MODULES, `${name}.js`);
      try {
        const run = (name, args = {}) => other.control('run', { file: file(name), args });
        return await work(run, () => other);
      } finally {
        await other.stop();
      }
    },
    receiver() {
      receiver ??= startReceiver();
      return receiver;
    },
    async close() {
      const closing = [site, servingSite].map((booting) => booting?.then((it) => it.stop()));
      closing.push(receiver?.then((it) => it.close()));
      await Promise.allSettled(closing);
    },
  };
  return context;
};
