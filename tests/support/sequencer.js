'use strict';

const { default: Sequencer } = require('@jest/test-sequencer');

/** Files that take longest, longest first: one that began last would have the end to itself. */
const LONG = [
  ...['api/recoveries', 'api/scheduler-bullmq', 'api/input-edge', 'api/worker', 'api/transfer'],
  ...['api/start-and-stop', 'api/boot', 'api/delivery-outbox', 'api/delivery-by-hand-elsewhere'],
  ...['api/replay', 'api/crm-deadlocks', 'api/side-by-side', 'api/features', 'api/pos-order'],
  ...['api/crm-email-race', 'api/delivery-two-nodes', 'api/delivery-receivers'],
  ...['api/webhook-manners', 'api/database-away', 'api/delivery-hooks', 'api/delivery-fairness'],
  ...['api/delivery-modules', 'api/product-writes', 'api/pos-batch', 'api/delivery-by-hand'],
  ...['api/crm-overlapping-writers', 'api/upgrade', 'api/imports', 'api/delivery-failing-long'],
  ...['api/crm-work-events', 'api/mcp', 'api/stock-site', 'api/command-recover'],
  ...['api/work-contract', 'api/mapping-inbox', 'api/event-listeners', 'api/pos-customers'],
  ...['e2e/recover-many', 'e2e/roles', 'e2e/tills-day', 'e2e/accessibility', 'e2e/truth'],
  ...['soak/crm-import-large', 'soak/delivery-crash', 'soak/command', 'soak/persistence'],
  ...['samples/receivers-frameworks', 'samples/docs', 'unit/scheduling/lease-keeper'],
  ...['unit/docs/asyncapi', 'unit/scheduling/slot-worker', 'unit/net/http-client'],
  ...['unit/stock/order-independence', 'unit/till-client/package', 'unit/docs/openapi'],
];

const rankOf = ({ path }) => {
  const at = LONG.findIndex((name) => path.endsWith(`/tests/${name}.test.ts`));
  return at < 0 ? LONG.length : at;
};

/**
 * Jest knows how long a file takes only where it has run before, which a new checkout has not. Much of a long
 * file's time is spent waiting, so short ones run beside them.
 */
module.exports = class LongestAndShortest extends Sequencer {
  async sort(tests) {
    const sorted = await super.sort(tests);
    sorted.sort((one, other) => rankOf(one) - rankOf(other));
    return sorted.map((_, at) => sorted.at(at % 2 === 0 ? at / 2 : -(at + 1) / 2));
  }
};
