'use strict';

const { createManagement } = require('./management');
const { withSite } = require('./site');
const { columns } = require('./columns');

const usage = `Usage, in the folder of a Strapi site: switchboard webhooks [--json]

Lists the webhooks and their health: id, health, waiting and failing deliveries, name, address.

  --json   print { "data": [webhooks] }, as GET /webhooks answers

Exit code: 0, or 2 if it could not run.
`;

const PER_PAGE = 100;

const readAll = async (call) => {
  const all = [];
  for (let page = 1; ; page += 1) {
    const query = { page: String(page), per_page: String(PER_PAGE) };
    const { data } = await call('webhooks', 'find', { query });
    all.push(...data);
    // The number of pages is counted up to a bound; this is not.
    if (data.length < PER_PAGE) return all;
  }
};

const describe = ({ id, name, url, health }) => [
  String(id),
  health.state,
  `${health.waiting} waiting`,
  `${health.failing} failing`,
  name,
  url,
];

const run = ({ json = false }, output) =>
  withSite(async (strapi) => {
    const data = await readAll(createManagement(strapi, 'switchboard webhooks'));
    if (json) output.json({ data });
    else output.result(columns(data.map(describe)) || 'No webhooks.');
    return 0;
  });

module.exports = {
  summary: 'list the webhooks and their health',
  usage,
  options: {},
  run,
};
