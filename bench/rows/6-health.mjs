import path from 'node:path';
import { compare } from '../lib/measure.mjs';

const FILE = path.resolve(import.meta.dirname, '../site/health.js');
const SMALL = 10_000;
const LARGE = Number(process.env.BENCH_LOG_ROWS) || 1_000_000;
const TIMES = 20;

/** Each on a database of its own, whose log has so many deliveries. */
const startSized = async (startSite, size) => {
  const site = await startSite({ options: { webhooks: { dispatch: false } }, accounts: false });
  const run = (op, args = {}) => site.control('run', { file: FILE, args: { op, ...args } });
  return {
    site,
    time: () => run('time', { times: TIMES }),
    prepare: () => run('prepare', { size }),
  };
};

export const rows = ({ startSite, rounds }) => [
  {
    name: 'health-home',
    what: `health and home with ${LARGE.toLocaleString('en')} deliveries in the log; with 10,000`,
    unit: 'ms',
    budget: { max: 1.2 },
    async run() {
      const small = await startSized(startSite, SMALL);
      const large = await startSized(startSite, LARGE);
      try {
        await small.prepare();
        const seconds = await large.prepare();
        for (const { time } of [small, large]) await time();
        const result = await compare(Math.max(9, rounds), {
          value: large.time,
          baseline: small.time,
        });
        return { ...result, note: `the log was filled in ${seconds.toFixed(0)} s` };
      } finally {
        await Promise.all([small.site.stop(), large.site.stop()]);
      }
    },
  },
];
