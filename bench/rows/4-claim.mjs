import { compare } from '../lib/measure.mjs';

const SMALL = { table: 'bench_small', size: 10_000 };
const LARGE = { table: 'bench_large', size: 1_000_000 };
const TOGETHER = 50_000;
const TIMES = 20;

const MANY_WEBHOOKS = 10_000;
const DUE = 10;
const LOOKS = 200;

/** Looks at a queue in which as many webhooks have work, however many there are. @returns milliseconds. */
const lookBeside = async (inSite, webhooks) => {
  const { table } = SMALL;
  const webhook = { url: 'http://127.0.0.1:9/', event: 'bench.nothing', count: webhooks };
  const ids = await inSite('webhooks', { op: 'copy', ...webhook });
  try {
    const due = ids.filter((_id, at) => at % Math.floor(ids.length / DUE) === 0).slice(0, DUE);
    await inSite('claim', { op: 'wait', table, ids, due });
    const looking = { op: 'look', table, times: LOOKS, due: DUE };
    await inSite('claim', looking);
    return await inSite('claim', looking);
  } finally {
    await inSite('claim', { op: 'finish', ids: [], tables: [table] });
    await inSite('webhooks', { op: 'remove', ids });
  }
};

/** Claims of the large queue; of the small one. */
const claims = async (inSite, size, together = []) => {
  const tables = [SMALL.table, LARGE.table];
  const sizes = { [SMALL.table]: SMALL.size, [LARGE.table]: size };
  const ids = await inSite('claim', { op: 'prepare', sizes, together });
  try {
    for (const table of tables) await inSite('claim', { op: 'time', table, times: TIMES });
    return await compare(9, {
      value: () => inSite('claim', { op: 'time', table: LARGE.table, times: TIMES }),
      baseline: () => inSite('claim', { op: 'time', table: SMALL.table, times: TIMES }),
    });
  } finally {
    await inSite('claim', { op: 'finish', ids, tables });
  }
};

export const rows = ({ inSite, inServingSite, rounds }) => [
  {
    name: 'claim',
    what: 'claiming 32 of 1,000,000 pending; of 10,000',
    unit: 'ms',
    budget: { max: 1.2 },
    run: () => claims(inSite, LARGE.size),
  },
  {
    name: 'claim-together',
    what: 'claiming 32 of 50,000 that are due at the same moment; of 10,000 that are not',
    unit: 'ms',
    budget: { max: 1.2 },
    run: () => claims(inSite, TOGETHER, [LARGE.table]),
  },
  {
    name: 'look',
    what: `looking when ${DUE} of 10,000 webhooks are due; of ${DUE}`,
    unit: 'ms',
    budget: { max: 1.2 },
    // On a node that leaves the sending to another one: nobody else looks meanwhile.
    run: () =>
      compare(rounds, {
        value: () => lookBeside(inServingSite, MANY_WEBHOOKS),
        baseline: () => lookBeside(inServingSite, DUE),
      }),
  },
];
