import { median } from '../lib/measure.mjs';

const NAMED = 'api::bench-mapped.bench-mapped';
const OTHER = 'api::bench-plain.bench-plain';
const COUNT = 80;
const ROUNDS = 5;

/** The site of these rows maps nothing to the CRM: what is measured is the option alone. */
const OPTIONS = { webhooks: { dispatch: false }, sources: { entries: [NAMED] } };
const WITHOUT = { webhooks: { dispatch: false }, sources: {} };

export const rows = ({ inSiteWith, receiver, rounds }) => {
  const times = Math.max(rounds, ROUNDS);

  const summary = (pairs) => ({
    value: median(pairs.map(([value]) => value)),
    baseline: median(pairs.map(([, baseline]) => baseline)),
    ratio: median(pairs.map(([value, baseline]) => value / baseline)),
  });

  /** A named type and one that is not, in turns, in one site. */
  const sideBySide = async (run) => {
    const args = { uids: [NAMED, OTHER], count: COUNT };
    await run('creates', args);
    const pairs = [];
    while (pairs.length < times) pairs.push(await run('creates', args));
    return summary(pairs);
  };

  /** A type that is not named, in a site with the option and in one without, in turns. */
  const unnamed = () =>
    inSiteWith(OPTIONS, (withOption) =>
      inSiteWith(WITHOUT, async (without) => {
        const args = { uids: [OTHER], count: COUNT };
        const pairs = [];
        for (let round = 0; round <= times; round += 1) {
          const [value] = await withOption('creates', args);
          const [baseline] = await without('creates', args);
          // The first of each warms up.
          if (round > 0) pairs.push([value, baseline]);
        }
        return summary(pairs);
      })
    );

  return [
    {
      name: 'entry-create-unnamed',
      what: 'creating an entry of a type that sources.entries does not name; a site without the option',
      unit: 'ms',
      run: unnamed,
    },
    {
      name: 'entry-create-nobody',
      what: 'creating an entry of a named type, nobody subscribed; a type that is not named',
      unit: 'ms',
      run: () => inSiteWith(OPTIONS, sideBySide),
    },
    {
      name: 'entry-create-named',
      what: 'creating an entry of a named type, one webhook subscribed; a type that is not named',
      unit: 'ms',
      run: () =>
        inSiteWith(OPTIONS, async (run) => {
          const { url } = await receiver();
          const ids = await run('webhooks', { op: 'create', url, event: 'entry.created' });
          try {
            return await sideBySide(run);
          } finally {
            await run('webhooks', { op: 'remove', ids });
          }
        }),
    },
  ];
};
