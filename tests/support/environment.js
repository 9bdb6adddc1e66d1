'use strict';

const { TestEnvironment } = require('jest-environment-node');
const { FileCosts } = require('./file-costs');

/**
 * A limit is there for what hangs. What a test proves about time it asserts by itself, so a machine
 * that is busy with something else may take that many times longer.
 */
const PATIENCE = 3;

/**
 * Fails a file that leaves a site or a receiver running. In the environment's teardown, because
 * that is the one place that comes after every `afterAll` of the file.
 */
class SiteEnvironment extends TestEnvironment {
  /** Hooks and tests whose limit is set: `beforeEach` starts many times. */
  limited = new WeakSet();

  constructor(config, context) {
    super(config, context);
    if (process.env.TEST_COSTS) this.costs = new FileCosts(context.testPath);
  }

  /** Called before jest reads the limit of what it starts. */
  handleTestEvent({ name, hook, test }, { testTimeout }) {
    const started = { hook_start: hook, test_fn_start: test }[name];
    if (!started || this.limited.has(started)) return;
    this.limited.add(started);
    started.timeout = PATIENCE * (started.timeout ?? testTimeout);
  }

  async teardown() {
    this.costs?.write(this.global.switchboardCosts);
    const leaked = this.global.switchboardLeaks?.() ?? [];
    await super.teardown();
    if (leaked.length > 0) {
      throw new Error(`Still running after the last test of this file: ${leaked.join(', ')}`);
    }
  }
}

module.exports = SiteEnvironment;
