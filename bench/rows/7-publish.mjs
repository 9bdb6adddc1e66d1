import path from 'node:path';
import { flood } from '../lib/flood.mjs';
import { compare } from '../lib/measure.mjs';

const EVENT = 'bench.event';
const COUNT = 1500;
const SITE_MODULES = path.resolve(import.meta.dirname, '../site');

const modules = (names) => names.map((name) => path.join(SITE_MODULES, `${name}.js`));

export const rows = ({ rounds, receiver, startSite }) => [
  {
    name: 'publish-post',
    what: "posts that publish one event; the same route writing one row of the host's own",
    unit: '/s',
    budget: { min: 0.9 },
    async run() {
      const { url } = await receiver();
      // As the rows of creates: sending is another node's.
      const site = await startSite({
        setupFiles: modules(['setup', 'post-routes']),
        options: { webhooks: { dispatch: false } },
      });
      try {
        const [file] = modules(['webhooks']);
        await site.control('run', { file, args: { op: 'create', url, event: EVENT } });
        const body = Buffer.from('{"data":{}}');
        const headers = {
          authorization: `Bearer ${site.apiToken}`,
          'content-type': 'application/json',
          'content-length': body.length,
        };
        const posts = (count) => Array.from({ length: count }, () => ({ body, headers }));
        const rate = (route, count = COUNT) => flood(site, `/api/${route}`, posts(count), 202);
        await rate('bench-row', 500);
        await rate('bench-publish', 500);
        return await compare(rounds, {
          value: () => rate('bench-publish'),
          baseline: () => rate('bench-row'),
        });
      } finally {
        await site.stop();
      }
    },
  },
];
