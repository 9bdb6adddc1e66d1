'use strict';

const { withSite } = require('./site');

const usage = `Usage, in the folder of a Strapi site: switchboard stock rebuild [--mend] [--json]

Works every stock level out anew from the ledger and reports where the stored one differs.

  --mend   set the stored levels right
  --json   print { "levels", "differences": [{ "sku", "location", "quantity", "should_be" }], "mended" }

Ends with 0 where there is no difference (left), 1 where there is one, 2 where it could not run.
`;

const describe = ({ sku, location, quantity, should_be: right }, mended) =>
  `${sku} at ${location}: is ${quantity}, should be ${right}${mended ? ' (mended)' : ''}`;

const run = ({ mend = false, json = false }, output) =>
  withSite(async (strapi) => {
    if (!strapi.plugins.switchboard)
      throw new Error('The plugin switchboard is not on in config/plugins of this site.');
    const service = strapi.service('plugin::switchboard.stock-rebuild');
    if (!service)
      throw new Error(
        'This site does without tills and stock: features.pos is false in its options.'
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
  summary: 'work every stock level out anew from the ledger and report differences',
  usage,
  options: { mend: { type: 'boolean' } },
  run,
};
