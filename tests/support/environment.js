'use strict';

const { TestEnvironment } = require('jest-environment-node');

/**
 * Fails a file that leaves a site or a receiver running. In the environment's teardown, because
 * that is the one place that comes after every `afterAll` of the file.
 */
class LeakCheckingEnvironment extends TestEnvironment {
  async teardown() {
    const leaked = this.global.switchboardLeaks?.() ?? [];
    await super.teardown();
    if (leaked.length > 0) {
      throw new Error(`Still running after the last test of this file: ${leaked.join(', ')}`);
    }
  }
}

module.exports = LeakCheckingEnvironment;
