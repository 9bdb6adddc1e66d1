'use strict';

const { default: Sequencer } = require('@jest/test-sequencer');

/** Files that take longest, longest first: one that began last would have the end to itself. */
const LONG = [
  ...['api/scheduler-bullmq', 'api/crm-deadlocks', 'api/worker', 'api/boot', 'api/input-edge'],
  ...['api/start-and-stop', 'api/side-by-side', 'api/recoveries', 'api/transfer', 'api/features'],
  ...['api/crm-work-events', 'api/stock-site', 'api/mcp', 'api/delivery-outbox', 'api/journal'],
  ...['api/playground-shop', 'api/webhook-headers', 'api/replay', 'api/pos-wire'],
  ...['api/upgrade', 'api/work-contract', 'api/crm-relations', 'api/delivery-by-hand-elsewhere'],
  ...['api/command-recover', 'api/mapping-inbox', 'api/product-writes', 'api/pos-order'],
  ...['e2e/recover-many', 'e2e/roles', 'e2e/tills-day', 'e2e/accessibility', 'e2e/truth'],
  ...['soak/crm-import-large', 'soak/delivery-crash', 'soak/command', 'soak/persistence'],
  ...['unit/docs/receivers-frameworks', 'unit/docs/samples-compile', 'unit/docs/asyncapi'],
  ...['unit/stock/order-independence', 'unit/till-client/package', 'unit/docs/openapi'],
  ...['unit/docs/receivers', 'unit/till-client/docs'],
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
