'use strict';

const { columns } = require('./columns');
const { logOptions, logUsage, readFilter } = require('./log-options');
const { createManagement } = require('./management');
const { withSite } = require('./site');
const { wholeNumber } = require('./whole-number');

const usage = `Usage, in the folder of a Strapi site: switchboard deliveries [filters] [--limit N] [--json]

Lists deliveries, the newest first: when it was made, its state, its webhook, its event, the record it is
about, why it failed, its id.

${logUsage}
  --limit N            so many, 1 to 100; default: 50
  --cursor CURSOR      those after a page before
  --json               print { "data", "meta": { "next_cursor", … } }, as GET /webhook-deliveries answers

Exit code: 0, or 2 if it could not run.
`;

const COMMAND = 'switchboard deliveries';
const LIMIT_MAX = 100;

const describe = (delivery) => [
  delivery.created_at,
  delivery.state,
  `webhook ${delivery.webhook_id}`,
  delivery.event,
  delivery.subject?.label ?? '-',
  delivery.error ?? '-',
  delivery.delivery_id,
];

const describeRest = ({ next_cursor: cursor, total, total_capped: isCapped }) => {
  const count = `${isCapped ? 'More than ' : ''}${total} in all.`;
  return cursor ? `${count} More: --cursor ${cursor}` : count;
};

const run = (values, output) => {
  const query = readFilter(COMMAND, values);
  wholeNumber(`${COMMAND}: --limit`, values.limit, 1, LIMIT_MAX);
  for (const name of ['limit', 'cursor']) {
    if (values[name] !== undefined) query[name] = values[name];
  }
  return withSite(async (strapi) => {
    const answer = await createManagement(strapi, COMMAND)('deliveries', 'find', { query });
    if (values.json) output.json(answer);
    else {
      const lines = columns(answer.data.map(describe));
      output.result([lines, describeRest(answer.meta)].filter(Boolean).join('\n'));
    }
    return 0;
  });
};

module.exports = {
  summary: 'find deliveries in the log',
  usage,
  options: { ...logOptions, limit: { type: 'string' }, cursor: { type: 'string' } },
  run,
};
