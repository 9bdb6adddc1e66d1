'use strict';

const { withSite } = require('./site');

const usage = `Usage, in the folder of a Strapi site: switchboard stock rebuild [--mend] [--json]

Recalculates every stock level from the ledger and lists stored levels that differ.

  --mend   fix the stored levels
  --json   print { "levels", "differences": [{ "sku", "location", "quantity", "should_be" }], "mended" }

Exit code: 0 if no difference is left, 1 if there are differences, 2 if it could not run.
`;

const describe = ({ sku, location, quantity, should_be: right }, mended) =>
  `${sku} at ${location}: is ${quantity}, should be ${right}${mended ? ' (fixed)' : ''}`;

const run = ({ mend = false, json = false }, output) =>
  withSite(async (strapi) => {
    if (!strapi.plugins.switchboard)
      throw new Error('The plugin switchboard is not on in config/plugins of this site.');
    const service = strapi.service('plugin::switchboard.stock-rebuild');
    if (!service)
      throw new Error(
        'Tills and stock are off on this site: features.pos is false in its options.'
      );
    const { levels, differences } = await service.rebuild({ mend });
    const mended = mend && differences.length > 0;
    if (json) output.json({ levels, differences, mended });
    else {
      const lines = differences.map((difference) => describe(difference, mended));
      output.result([...lines, `${levels} levels, ${differences.length} differences.`].join('\n'));
    }
    return differences.length === 0 || mend ? 0 : 1;
  });

module.exports = {
  summary: 'recalculate every stock level from the ledger and list differences',
  usage,
  options: { mend: { type: 'boolean' } },
  run,
};
