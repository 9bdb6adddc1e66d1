'use strict';

const { columns } = require('./columns');
const { logOptions, logUsage, readFilter } = require('./log-options');
const { createManagement } = require('./management');
const { withSite } = require('./site');

const usage = `Usage, in the folder of a Strapi site: switchboard recover [filters] [--yes] [--detach] [--json]

Resends failing and failed deliveries that match the filters, oldest first, with the same ids and bytes.
Without --yes it only lists them.

${logUsage}
  --id ID              this delivery, by either of its ids; at most 500 times
  --yes                send them again, and wait until each had an attempt
  --detach             with --yes: do not wait; the site's processes do it
  --json               print the preview, or with --yes the recovery, as the routes answer them

While it waits, it also sends, so it works on a site that does not run. If you interrupt it, the site's
processes continue. At the end it says why deliveries failed (with --json, on standard error).

Exit code: 0 if all were sent, 1 if some were not, 2 if it could not run.
`;

const COMMAND = 'switchboard recover';
const LOOK_MS = 250;
const SAY_MS = 1000;

const IDS_AT_MOST = 500;
const ID = /^([1-9]\d{0,8}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i;

const readIds = (ids) => {
  if (ids.length > IDS_AT_MOST) throw new Error(`${COMMAND}: --id is given more than 500 times`);
  const wrong = ids.find((id) => !ID.test(id));
  if (wrong !== undefined)
    throw new Error(`${COMMAND}: --id must be the id of a delivery, not "${wrong}"`);
  return ids;
};

const sleep = (milliseconds) =>
  new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });

const describePreview = ({ matching, by_webhook: byWebhook, oldest_at: oldest, sample }) => {
  if (matching === 0) return 'Nothing to send again.';
  const webhooks = byWebhook.map(({ webhook_id: id, count }) => [`  webhook ${id}`, String(count)]);
  const some = sample.map(({ created_at: at, event, subject, error, delivery_id: id }) => [
    `  ${at}`,
    event,
    subject?.label ?? '-',
    error ?? '-',
    id,
  ]);
  return [
    `${matching} to send again, the oldest made at ${oldest}:`,
    columns(webhooks),
    'The newest of them:',
    columns(some),
    'Nothing was sent. Run again with --yes to send them.',
  ].join('\n');
};

const describeProgress = ({ id, state, matching, queued, sent, failed }) =>
  `recovery ${id} ${state}: ${queued} of ${matching} queued, ${sent} sent, ${failed} failed`;

/** Why what is not sent failed, one line for each webhook and cause; nothing where all were sent. */
const readCauses = async (call, { id, failed }) => {
  if (failed === 0) return [];
  const { data } = await call('delivery-causes', 'find', { query: { recovery: String(id) } });
  const rows = data.map(({ webhook_id: webhook, cause, count }) => [
    `  webhook ${webhook}`,
    cause,
    String(count),
  ]);
  return rows.length === 0 ? [] : ['Why they failed:', columns(rows)];
};

const SILENT_MS = 30_000;
const STANDS_STILL =
  'No progress. Deliveries of a webhook that is off or paused wait until it is on again. Press Ctrl+C to leave the rest to the site.';

const waitForEnd = async (call, started, output) => {
  let said = '';
  let saidAt = Date.now();
  let hasStood = false;
  for (;;) {
    const recovery = await call('recoveries', 'findOne', { params: { id: String(started.id) } });
    if (recovery.state === 'done' || recovery.state === 'cancelled') return recovery;
    const line = describeProgress(recovery);
    if (line !== said && Date.now() - saidAt >= SAY_MS) {
      output.complain(line);
      said = line;
      saidAt = Date.now();
      hasStood = false;
    }
    if (!hasStood && Date.now() - saidAt >= SILENT_MS) {
      output.complain(STANDS_STILL);
      hasStood = true;
    }
    await sleep(LOOK_MS);
  }
};

/** A number that was mistyped finds nothing, which is no answer. */
const requireWebhook = async (strapi, id) => {
  if (id === undefined) return;
  try {
    await strapi.service('plugin::switchboard.webhooks').get(Number(id));
  } catch (error) {
    if (error?.name !== 'NotFoundError') throw error;
    throw new Error(`${COMMAND}: there is no webhook ${id}; see switchboard webhooks`);
  }
};

const run = (values, output) => {
  const filter = readFilter(COMMAND, values);
  if (values.id) filter.ids = readIds(values.id);
  const { yes = false, detach = false, json = false } = values;
  if (detach && !yes) throw new Error(`${COMMAND}: --detach goes with --yes`);
  const work = async (strapi) => {
    const call = createManagement(strapi, COMMAND);
    await requireWebhook(strapi, values.webhook);
    if (!yes) {
      const preview = await call('recoveries', 'preview', { body: { filter } });
      if (json) output.json(preview);
      else output.result(describePreview(preview));
      return 0;
    }
    const started = await call('recoveries', 'create', { body: { filter } });
    const recovery = detach ? started : await waitForEnd(call, started, output);
    const causes = await readCauses(call, recovery);
    if (json) {
      output.json(recovery);
      for (const line of causes) output.complain(line);
    } else output.result([describeProgress(recovery), ...causes].join('\n'));
    return detach || (recovery.state === 'done' && recovery.sent === recovery.matching) ? 0 : 1;
  };
  return withSite(work, { sends: yes && !detach });
};

module.exports = {
  summary: 'send failed deliveries again',
  usage,
  options: {
    ...logOptions,
    id: { type: 'string', multiple: true },
    yes: { type: 'boolean' },
    detach: { type: 'boolean' },
  },
  run,
};
