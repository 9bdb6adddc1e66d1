'use strict';

const { requireWebhooks } = require('./management');
const { withSite } = require('./site');

const COMMAND = 'switchboard copy-host-webhooks';

const usage = `Usage, in the folder of a Strapi site: switchboard copy-host-webhooks [--json]

Copies each of Strapi's built-in webhooks (Settings > Webhooks) to an inactive webhook of Switchboard:
name, address, events and headers, including server.webhooks.defaultHeaders. Lists events without a
counterpart, changes for receivers, and each new secret, once. The built-in webhooks stay unchanged. You
can run it again: webhooks with the same name and address are not copied twice.

Events of entries have counterparts if sources.entries names a type, events of files if sources.media is
true. A webhook without any counterpart is skipped.

  --json   print { "copied", "present", "skipped", "refused", "changes" }

Exit code: 0, 1 if one could not be copied, for example because its address is refused, 2 if it could
not run.
`;

const described = ({ name, url }) => `${JSON.stringify(name)} ${url}`;

const leftOut = (no, found) => found.map(({ name, reason }) => `  ${no} ${name}: ${reason}`);

const events = (found) =>
  leftOut(
    'event',
    found.map(({ event, reason }) => ({ name: event, reason }))
  );

const describeCopied = (one) => [
  `copied as webhook ${one.id}: ${described(one)}`,
  `  events ${one.events.join(', ')}`,
  ...(one.headers.length > 0 ? [`  headers ${one.headers.join(', ')}`] : []),
  `  secret ${one.secret}`,
  ...events(one.no_counterpart),
  ...leftOut('header not copied,', one.headers_left_out),
];

const describe = ({ copied, present, skipped, refused, changes }) => {
  const lines = [
    ...copied.flatMap(describeCopied),
    ...present.map((one) => `already copied as webhook ${one.id}: ${described(one)}`),
    ...skipped.flatMap((one) => [
      `skipped: ${described(one)}: none of its events has a counterpart`,
      ...events(one.no_counterpart),
    ]),
    ...refused.map((one) => `could not be copied: ${described(one)}: ${one.reason}`),
  ];
  if (lines.length === 0) return 'The site has no built-in webhooks.';
  if (copied.length === 0) return lines.join('\n');
  return [
    ...lines,
    '',
    'Changes for receivers:',
    ...changes.map((change) => `- ${change}`),
    '',
    'The copies are off, and their secrets are not printed again. When a receiver is ready, switch its copy',
    'on and the built-in webhook off. While both are on, each event is sent twice.',
  ].join('\n');
};

const run = ({ json = false }, output) =>
  withSite(async (strapi) => {
    await requireWebhooks(strapi, COMMAND);
    const result = await strapi.service('plugin::switchboard.host-webhooks').copy();
    if (json) output.json(result);
    else output.result(describe(result));
    return result.refused.length > 0 ? 1 : 0;
  });

module.exports = {
  summary: "copy Strapi's built-in webhooks, switched off",
  usage,
  options: {},
  run,
};
