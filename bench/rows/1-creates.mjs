import { median } from '../lib/measure.mjs';

const MAPPED = 'api::bench-mapped.bench-mapped';
const PLAIN = 'api::bench-plain.bench-plain';
const EVENT = 'contact.created';
const COUNT = 80;
const ROUNDS = 5;

export const rows = ({ inSite, inServingSite, receiver, rounds }) => {
  const pairs = async (run) => {
    const args = { uids: [MAPPED, PLAIN], count: COUNT };
    await run('creates', args);
    const measured = [];
    while (measured.length < Math.max(rounds, ROUNDS)) measured.push(await run('creates', args));
    return {
      value: median(measured.map(([value]) => value)),
      baseline: median(measured.map(([, baseline]) => baseline)),
      ratio: median(measured.map(([value, baseline]) => value / baseline)),
    };
  };

  const subscribed = async (run) => {
    const { url } = await receiver();
    const ids = await run('webhooks', { op: 'create', url, event: EVENT });
    try {
      return await pairs(run);
    } finally {
      await run('webhooks', { op: 'remove', ids });
    }
  };

  return [
    {
      name: 'create-nobody',
      what: 'creating a contact, nobody subscribed; the same type unmapped',
      unit: 'ms',
      budget: { max: 1.05 },
      run: () => pairs(inSite),
    },
    {
      name: 'create-subscribed',
      what: 'creating a contact, one webhook subscribed; the same type unmapped',
      unit: 'ms',
      budget: { max: 1.25 },
      // On a node that leaves the sending to another one: sending would slow both halves.
      run: () => subscribed(inServingSite),
    },
  ];
};
