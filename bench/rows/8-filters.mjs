import { support } from '../lib/support.mjs';

const EVENT_BYTES = 60_000;
const GENERATED = 300;
const TIMES = 5;
/** As a webhook has it that wants one thing. */
const SIMPLE = { properties: { source: { const: 'form' } }, required: ['source'] };

/** @returns milliseconds of the fastest of a few times: the work itself, without what the machine does beside it. */
const fastest = (work) =>
  Math.min(
    ...Array.from({ length: TIMES }, () => {
      const started = performance.now();
      work();
      return performance.now() - started;
    })
  );

const most = (named) => named.reduce((one, other) => (other.ms > one.ms ? other : one));

/** The rules themselves, in this process: no site and no database has a part in them. */
const load = () => {
  const rules = support('../../server/src/webhooks/rules/data-filter');
  const { costlyData, hostile, largestTaken } = support('../unit/webhooks/support/hostile-filters');
  const grown = largestTaken((filter) => rules.refusalOf(filter) === null);
  const seed = Math.floor(Math.random() * 2 ** 31);
  const { filter } = hostile(seed);
  const generated = Array.from({ length: GENERATED }, (_none, at) => [
    `generated ${at} of seed ${seed}`,
    filter(),
  ]).filter(([, made]) => rules.judgeFilter(made) === null);
  return { ...rules, filters: [...grown, ...generated], data: costlyData(EVENT_BYTES) };
};

export const rows = () => {
  let loaded;
  const all = () => (loaded ??= load());
  return [
    {
      name: 'filter-save',
      what: 'judging the costliest filter that is taken; one with a single condition',
      unit: 'ms',
      budget: { max: 50, of: 'value' },
      async run() {
        const { judgeFilter, filters } = all();
        const save = (filter) => fastest(() => judgeFilter(structuredClone(filter)));
        const { name, ms } = most(filters.map(([name, filter]) => ({ name, ms: save(filter) })));
        return { value: ms, baseline: save(SIMPLE), note: name };
      },
    },
    {
      name: 'filter-event',
      what: 'holding the costliest event of 60 kB against the costliest filter; making JSON of it',
      unit: 'ms',
      budget: { max: 5, of: 'value' },
      async run() {
        const { compile, filters, data } = all();
        const { name, ms, event } = most(
          filters.flatMap(([name, filter]) => {
            const matches = compile(filter);
            return data.map(([of, event]) => ({
              name: `${name}, ${of}`,
              ms: fastest(() => matches(event)),
              event,
            }));
          })
        );
        return { value: ms, baseline: fastest(() => JSON.stringify(event)), note: name };
      },
    },
  ];
};
