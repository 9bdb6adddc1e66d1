import { randomInt } from 'node:crypto';
import { compile, judgeFilter, refusalOf } from '../../server/src/webhooks/rules/data-filter';
import { costlyData, hostile, largestTaken } from '../unit/webhooks/support/hostile-filters';

/**
 * What filters may cost: 50 ms of a processor to save one of 16 kB, 5 ms to hold one against an event of
 * 60 kB. The unit tests count the work; this prints the times.
 *
 * FILTER_SECONDS: how long filters are made; a minute if left out. FILTER_SEED: a run's seed, which it prints.
 */
const SECONDS = Number(process.env.FILTER_SECONDS ?? 60);
const SEED = Number(process.env.FILTER_SEED ?? randomInt(2 ** 31 - 1));

type Filter = Record<string, unknown>;

/** Milliseconds of the processor, the least of some tries: what runs beside it is not the filter's. */
const costOf = (tries: number, work: (nth: number) => unknown): number =>
  Math.min(
    ...Array.from({ length: tries }, (_, nth) => {
      const before = process.cpuUsage();
      work(nth);
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1000;
    })
  );

it(
  `filters cost little (seed ${SEED})`,
  () => {
    const data = costlyData(60_000);
    const worst = { save: { ms: 0, what: '' }, match: { ms: 0, what: '' } };
    const note = (kind: keyof typeof worst, ms: number, what: string): void => {
      if (ms > worst[kind].ms) worst[kind] = { ms, what };
    };
    const measure = (filter: Filter): void => {
      const text = JSON.stringify(filter);
      // Another text each time: what was compiled before is found by its own.
      const save = costOf(3, (title) => judgeFilter({ ...filter, title }));
      note('save', save, text);
      if (refusalOf(filter)) return;
      const validate = compile(filter);
      for (const [name, value] of data) {
        note(
          'match',
          costOf(3, () => validate(value)),
          `${name}: ${text}`
        );
      }
    };
    for (const [, filter] of largestTaken((one) => refusalOf(one) === null)) measure(filter);
    const { filter: make } = hostile(SEED);
    const until = Date.now() + SECONDS * 1000;
    while (Date.now() < until) measure(make());
    for (const [kind, { ms, what }] of Object.entries(worst)) {
      process.stdout.write(`${kind}: at most ${ms.toFixed(1)} ms, ${what.slice(0, 300)}\n`);
    }
    expect(worst.save.ms).toBeLessThan(50);
    expect(worst.match.ms).toBeLessThan(5);
  },
  (SECONDS + 120) * 1000
);
