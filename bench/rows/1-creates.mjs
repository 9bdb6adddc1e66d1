import { compare } from '../lib/measure.mjs';

const MAPPED = 'api::bench-mapped.bench-mapped';
const PLAIN = 'api::bench-plain.bench-plain';
const EVENT = 'contact.created';

/** Long enough to see five per cent, on a database that syncs each commit to disk too. */
const COUNT = { sqlite: 300, postgres: 150, mysql: 100 };
const ROUNDS = 7;

export const rows = ({ database, inSite, receiver, rounds }) => {
  const count = COUNT[database];
  const measure = async () => {
    for (const uid of [MAPPED, PLAIN]) await inSite('creates', { uid, count });
    return compare(Math.max(rounds, ROUNDS), {
      value: () => inSite('creates', { uid: MAPPED, count }),
      baseline: () => inSite('creates', { uid: PLAIN, count }),
    });
  };

  return [
    {
      name: 'create-nobody',
      what: 'creating a contact, nobody subscribed; the same type unmapped',
      unit: 'ms',
      budget: { max: 1.05 },
      run: measure,
    },
    {
      name: 'create-subscribed',
      what: 'creating a contact, one webhook subscribed; the same type unmapped',
      unit: 'ms',
      budget: { max: 1.25 },
      async run() {
        const { url } = await receiver();
        // Queued but not sent within the write's time: sending is measured on its own.
        const ids = await inSite('webhooks', { op: 'create', url, event: EVENT });
        try {
          return await measure();
        } finally {
          await inSite('webhooks', { op: 'remove', ids });
        }
      },
    },
  ];
};
