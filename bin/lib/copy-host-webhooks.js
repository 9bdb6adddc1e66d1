'use strict';

const { requireWebhooks } = require('./management');
const { withSite } = require('./site');

const COMMAND = 'switchboard copy-host-webhooks';

const usage = `Usage, in the folder of a Strapi site: switchboard copy-host-webhooks [--json]

Makes an inactive webhook here of each of Strapi's own (Settings > Webhooks): its name, address, events
and headers, those of server.webhooks.defaultHeaders included. It says which events have no counterpart,
what a receiver will find changed, and each new secret, once. Strapi's own stay as they are. One that is
here already, by its name and address, is left alone, so it may be run again.

Events of entries have counterparts once sources.entries names a type, those of files once sources.media
is true. A webhook none of whose events has one is skipped.

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
    ...present.map((one) => `there already as webhook ${one.id}: ${described(one)}`),
    ...skipped.flatMap((one) => [
      `skipped: ${described(one)}: none of its events has a counterpart`,
      ...events(one.no_counterpart),
    ]),
    ...refused.map((one) => `could not be copied: ${described(one)}: ${one.reason}`),
  ];
  if (lines.length === 0) return 'The host has no webhooks of its own.';
  if (copied.length === 0) return lines.join('\n');
  return [
    ...lines,
    '',
    'What a receiver will find changed:',
    ...changes.map((change) => `- ${change}`),
    '',
    'The copies are off, and their secrets are not printed again. Switch each on when its receiver is',
    "ready, and Strapi's own off then: until that is done, what happens is posted twice.",
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
  summary: "make inactive webhooks of Strapi's own",
  usage,
  options: {},
  run,
};
