'use strict';

const { wholeNumber } = require('./whole-number');

const STATES = ['waiting', 'failing', 'failed', 'sent', 'test'];
const STATUSES = ['pending', 'sent', 'failed'];
const LARGEST_ID = 999_999_999;

/** The filters of the log as options, for `parseArgs`. */
const options = {
  webhook: { type: 'string' },
  event: { type: 'string' },
  status: { type: 'string' },
  state: { type: 'string' },
  cause: { type: 'string' },
  'subject-type': { type: 'string' },
  'subject-id': { type: 'string' },
  from: { type: 'string' },
  to: { type: 'string' },
  q: { type: 'string' },
  recovery: { type: 'string' },
};

const usage = `  --webhook ID         of this webhook
  --state STATE        ${STATES.join(', ')}
  --status STATUS      ${STATUSES.join(', ')}
  --event NAME         of this event
  --cause CAUSE        why it failed, such as timeout or http_500
  --subject-type TYPE  about a contact, tag, company, deal, task or campaign
  --subject-id ID      about the record with this id
  --from TIME          created at this time or later, such as 2030-01-31T09:15:00Z
  --to TIME            created before this time
  --q TEXT             in a delivery's id, its record's label or its cause
  --recovery ID        deliveries of this recovery`;

const oneOf = (name, value, allowed) => {
  if (value === undefined || allowed.includes(value)) return;
  throw new Error(`${name} must be one of ${allowed.join(', ')}, not "${value}"`);
};

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/;

const time = (name, value) => {
  if (value === undefined || (TIME.test(value) && !Number.isNaN(Date.parse(value)))) return;
  throw new Error(
    `${name} must be a time with its offset, such as 2030-01-31T09:15:00Z, not "${value}"`
  );
};

/**
 * The options as the routes take them.
 * @param command what the message about a wrong one begins with
 * @throws {Error} one line that names the option and what it may be
 */
const readFilter = (command, values) => {
  wholeNumber(`${command}: --webhook`, values.webhook, 1, LARGEST_ID);
  wholeNumber(`${command}: --recovery`, values.recovery, 1, LARGEST_ID);
  oneOf(`${command}: --state`, values.state, STATES);
  oneOf(`${command}: --status`, values.status, STATUSES);
  for (const name of ['from', 'to']) time(`${command}: --${name}`, values[name]);
  return Object.fromEntries(
    Object.keys(options)
      .filter((name) => values[name] !== undefined)
      .map((name) => [name.replaceAll('-', '_'), values[name]])
  );
};

module.exports = { logOptions: options, logUsage: usage, readFilter };
