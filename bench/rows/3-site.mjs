import { compare, percentile } from '../lib/measure.mjs';
import { labelsOf, visit } from '../lib/visit.mjs';

const EVENT = 'bench.event';
const SECONDS = 3;
/** More than can be sent in that time. */
const BACKLOG = 40_000;

/** A few seconds of requests. @returns their milliseconds. */
const visitShortly = (options) => visit(options, (seconds) => seconds < SECONDS);

export const rows = ({ site, inSite, receiver, rounds }) => [
  {
    name: 'site-get',
    what: 'GET of the site, p99, while deliveries run flat out; idle',
    unit: 'ms',
    budget: { max: 1.3 },
    async run() {
      const options = labelsOf(await site());
      const { url } = await receiver();
      const ids = await inSite('webhooks', { op: 'create', url, event: EVENT });
      try {
        await visitShortly(options);
        return await compare(rounds, {
          async value() {
            // All of it queued before: what is measured is sending, not a bulk write.
            await inSite('backlog', { op: 'fill', event: EVENT, count: BACKLOG });
            const times = await visitShortly(options);
            const left = await inSite('backlog', { op: 'left', webhookIds: ids });
            await inSite('backlog', { op: 'drop', webhookIds: ids });
            if (left === 0) throw new Error('the deliveries ended before the requests');
            return percentile(times, 0.99);
          },
          baseline: async () => percentile(await visitShortly(options), 0.99),
        });
      } finally {
        await inSite('webhooks', { op: 'remove', ids });
      }
    },
  },
];
