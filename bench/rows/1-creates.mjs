import { median } from '../lib/measure.mjs';

const MAPPED = 'api::bench-mapped.bench-mapped';
const PLAIN = 'api::bench-plain.bench-plain';
const EVENT = 'contact.created';
const COUNT = 80;
/** Code that has run seldom is slow, the host's as ours; a site that runs for a day has forgotten that. */
const WARM_UP = 1500;
const MANY = 10_000;
const ROUNDS = 5;
/** One create takes as long as a pause of the machine: few of them say nothing of a hundredth. */
const SHORT_ROUNDS = 100;

export const rows = ({ inSite, inServingSite, receiver, rounds }) => {
  const pairs = async (run, module = 'creates', count = COUNT) => {
    const args = { uids: [MAPPED, PLAIN], count };
    await run(module, { uids: args.uids, count: Math.max(count, WARM_UP) });
    const measured = [];
    const least = count === COUNT ? SHORT_ROUNDS : ROUNDS;
    while (measured.length < Math.max(rounds, least)) measured.push(await run(module, args));
    return {
      value: median(measured.map(([value]) => value)),
      baseline: median(measured.map(([, baseline]) => baseline)),
      ratio: median(measured.map(([value, baseline]) => value / baseline)),
    };
  };

  const subscribed = async (run, ...how) => {
    const { url } = await receiver();
    const ids = await run('webhooks', { op: 'create', url, event: EVENT });
    try {
      return await pairs(run, ...how);
    } finally {
      await run('webhooks', { op: 'remove', ids });
    }
  };

  return [
    {
      name: 'create-nobody',
      what: 'creating a contact, nobody subscribed; the same type unmapped',
      unit: 'ms',
      budget: { max: 1.02 },
      run: () => pairs(inSite),
    },
    {
      name: 'create-subscribed',
      what: 'creating a contact, one webhook subscribed; the same type unmapped',
      unit: 'ms',
      budget: (database) => ({ max: database === 'sqlite' ? 1.12 : 1.15 }),
      // On a node that leaves the sending to another one: sending would slow both halves.
      run: () => subscribed(inServingSite),
    },
    {
      name: 'create-beside-others',
      what: 'the same beside 10,000 webhooks that ask for other events; without those',
      unit: 'ms',
      budget: { max: 1.02 },
      run: async () => {
        const { url } = await receiver();
        // Before and after: a machine that slows down meanwhile says nothing of webhooks.
        const before = await subscribed(inServingSite);
        const others = await inServingSite('webhooks', {
          op: 'copy',
          url,
          event: 'deal.won',
          count: MANY,
        });
        const beside = await subscribed(inServingSite).finally(() =>
          inServingSite('webhooks', { op: 'remove', ids: others })
        );
        const after = await subscribed(inServingSite);
        return {
          value: beside.value,
          baseline: (before.value + after.value) / 2,
          ratio: (2 * beside.ratio) / (before.ratio + after.ratio),
        };
      },
    },
    {
      name: 'create-many',
      what: 'createMany of 10,000 contacts, one webhook subscribed; the same type unmapped',
      unit: 'ms',
      budget: (database) => ({ max: database === 'sqlite' ? 1.7 : 1.9 }),
      run: () => subscribed(inServingSite, 'create-many', MANY),
    },
  ];
};
