import { compare } from '../lib/measure.mjs';

const SMALL = { table: 'bench_small', size: 10_000 };
const LARGE = { table: 'bench_large', size: 1_000_000 };
const TIMES = 20;

export const rows = ({ inSite }) => [
  {
    name: 'claim',
    what: 'claiming 32 of 1,000,000 pending; of 10,000',
    unit: 'ms',
    budget: { max: 1.2 },
    async run() {
      const sizes = { [SMALL.table]: SMALL.size, [LARGE.table]: LARGE.size };
      const ids = await inSite('claim', { op: 'prepare', sizes });
      try {
        for (const { table } of [SMALL, LARGE])
          await inSite('claim', { op: 'time', table, times: TIMES });
        return await compare(9, {
          value: () => inSite('claim', { op: 'time', table: LARGE.table, times: TIMES }),
          baseline: () => inSite('claim', { op: 'time', table: SMALL.table, times: TIMES }),
        });
      } finally {
        await inSite('claim', { op: 'finish', ids, tables: [SMALL.table, LARGE.table] });
      }
    },
  },
];
