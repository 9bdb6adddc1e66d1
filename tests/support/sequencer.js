'use strict';

const { default: Sequencer } = require('@jest/test-sequencer');

/** Files that take longest, longest first: one that began last would have the end to itself. */
const LONG = [
  ...['api/recoveries', 'api/scheduler-bullmq', 'api/input-edge', 'api/transfer', 'api/worker'],
  ...['api/boot', 'api/replay', 'api/start-and-stop', 'api/crm-deadlocks', 'api/side-by-side'],
  ...['api/pos-order', 'api/features', 'api/crm-email-race', 'api/delivery-two-nodes'],
  ...['api/delivery-modules', 'api/product-writes', 'api/pos-batch'],
  ...['api/crm-overlapping-writers', 'api/delivery-outbox', 'api/upgrade', 'api/delivery-finding'],
  ...['api/crm-work-events', 'api/mcp', 'api/stock-site', 'api/command-recover'],
  ...['api/work-contract', 'api/mapping-inbox', 'api/crm-relations'],
  ...['api/delivery-by-hand-elsewhere', 'api/till-verify', 'api/delivery-receivers'],
  ...['api/webhook-manners', 'api/delivery-hooks', 'api/overview', 'api/crm-modules'],
  ...['e2e/recover-many', 'e2e/roles', 'e2e/tills-day', 'e2e/accessibility', 'e2e/truth'],
  ...['soak/crm-import-large', 'soak/delivery-crash', 'soak/command', 'soak/persistence'],
  ...['samples/receivers-frameworks', 'samples/docs', 'unit/docs/asyncapi'],
  ...['unit/stock/order-independence', 'unit/till-client/package', 'unit/docs/openapi'],
];

const rankOf = ({ path }) => {
  const at = LONG.findIndex((name) => path.endsWith(`/tests/${name}.test.ts`));
  return at < 0 ? LONG.length : at;
};

/** Jest knows how long a file takes only where it has run before, which a new checkout has not. */
module.exports = class LongestFirst extends Sequencer {
  async sort(tests) {
    const sorted = await super.sort(tests);
    return [...sorted].sort((one, other) => rankOf(one) - rankOf(other));
  }
};
