import { percentile } from '../lib/measure.mjs';
import { labelsOf, visit } from '../lib/visit.mjs';

const EVENT = 'bench.event';
const SECONDS = 3;
/** The slowest of few requests says more of the machine than of the site: all turns count together. */
const TURNS = 5;
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
        const [idle, busy] = [[], []];
        await visitShortly(options);
        for (let turn = 0; turn < Math.max(rounds, TURNS); turn += 1) {
          idle.push(...(await visitShortly(options)));
          // All of it queued before: what is measured is sending, not a bulk write.
          await inSite('backlog', { op: 'fill', event: EVENT, count: BACKLOG });
          busy.push(...(await visitShortly(options)));
          const left = await inSite('backlog', { op: 'left', webhookIds: ids });
          await inSite('backlog', { op: 'drop', webhookIds: ids });
          if (left === 0) throw new Error('the deliveries ended before the requests');
        }
        const [value, baseline] = [percentile(busy, 0.99), percentile(idle, 0.99)];
        return { value, baseline, ratio: value / baseline };
      } finally {
        await inSite('webhooks', { op: 'remove', ids });
      }
    },
  },
];
