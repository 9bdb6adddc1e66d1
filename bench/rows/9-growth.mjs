import path from 'node:path';

const FILE = path.resolve(import.meta.dirname, '../site/health.js');
/** The first size is the one that the others are compared with. */
const WEBHOOKS = [10, 100, 1000, 10_000];
const BACKLOGS = [10_000, 100_000, 1_000_000];
const LOGS = [10_000, 100_000, 1_000_000, 5_000_000];
/** One delivery of so many fails. */
const FAILING = 100;
const TIMES = 20;
const CREATES = 200;

const MAPPED = 'api::bench-mapped.bench-mapped';
const EVENT = 'contact.created';

const inEnglish = (size) => size.toLocaleString('en');

/** Measures each size. @returns the last one beside the first, and in the note what each figure was at each size */
const growing = async (sizes, measure) => {
  const found = [];
  for (const size of sizes) found.push(await measure(size));
  const lines = Object.keys(found[0]).map((name) => {
    const figures = found.map((one, at) => `${inEnglish(sizes[at])}: ${one[name].toFixed(2)} ms`);
    return `${name}, ${figures.join(', ')}`;
  });
  const [[first], [last]] = [found[0], found.at(-1)].map((one) => Object.values(one));
  return { value: last, baseline: first, ratio: last / first, note: lines.join('; ') };
};

export const rows = ({ startSite, inServingSite, receiver }) => [
  {
    name: 'growth-webhooks',
    what: 'creating a contact beside so many webhooks, one of which asks for it',
    unit: 'ms',
    run: async () => {
      const { url } = await receiver();
      const create = async () => {
        await inServingSite('creates', { uids: [MAPPED], count: CREATES });
        const [took] = await inServingSite('creates', { uids: [MAPPED], count: CREATES });
        return took;
      };
      const ids = await inServingSite('webhooks', { op: 'create', url, event: EVENT });
      try {
        return await growing(WEBHOOKS, async (count) => {
          const others = { op: 'copy', url, event: 'deal.won', count };
          const beside = await inServingSite('webhooks', others);
          try {
            return { 'a create': await create() };
          } finally {
            await inServingSite('webhooks', { op: 'remove', ids: beside });
          }
        });
      } finally {
        await inServingSite('webhooks', { op: 'remove', ids });
      }
    },
  },
  {
    name: 'growth-backlog',
    what: 'looking for work and claiming 32 rows, with so many pending',
    unit: 'ms',
    run: () =>
      growing(BACKLOGS, async (size) => {
        const table = 'bench_large';
        const ids = await inServingSite('claim', { op: 'prepare', sizes: { [table]: size } });
        try {
          await inServingSite('claim', { op: 'time', table, times: TIMES });
          return { 'a turn': await inServingSite('claim', { op: 'time', table, times: TIMES }) };
        } finally {
          await inServingSite('claim', { op: 'finish', ids, tables: [table] });
        }
      }),
  },
  {
    name: 'growth-log',
    what: `reading the log with so many deliveries in it, one of ${FAILING} failing`,
    unit: 'ms',
    run: () =>
      growing(LOGS, async (size) => {
        const site = await startSite({
          options: { webhooks: { dispatch: false } },
          accounts: false,
        });
        const run = (op, args) => site.control('run', { file: FILE, args: { op, ...args } });
        try {
          await run('prepare', { size, failing: size / FAILING });
          await run('timeLog', { times: TIMES });
          return await run('timeLog', { times: TIMES });
        } finally {
          await site.stop();
        }
      }),
  },
];
