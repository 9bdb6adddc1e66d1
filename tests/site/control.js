'use strict';

const { setTimeout } = require('node:timers/promises');

/** A node remembers for so long who subscribed, whatever a statement of somebody's own has made of webhooks. */
const REMEMBERED_MS = 500;
const CHANGES_WEBHOOKS = /^\s*(update|insert into|delete from) switchboard_webhooks\b/i;

/** Rows of a raw statement in one shape; the drivers disagree. */
const rowsOf = (answer) => {
  if (Array.isArray(answer)) return Array.isArray(answer[0]) ? answer[0] : answer;
  return answer?.rows ?? answer;
};

/** JSON cannot carry a BigInt, which a driver may answer with. */
const plain = (value) =>
  value === undefined
    ? undefined
    : JSON.parse(
        JSON.stringify(value, (_key, item) => (typeof item === 'bigint' ? Number(item) : item))
      );

/**
 * What a test may ask the site to do from inside its process, outside of any request.
 * Described in tests/support/README.md.
 */
const createControl = (strapi) => {
  /** For handlers and functions that a test sends: what they put here, it can ask for. */
  const state = {};
  global.switchboardTestState = state;

  const operations = {
    query: ({ uid, method, params }) => strapi.db.query(uid)[method](params),

    documents: ({ uid, method, params }) => strapi.documents(uid)[method](params),

    service: ({ uid, method, args = [] }) => strapi.service(uid)[method](...args),

    send: ({ event, data }) => strapi.service('plugin::switchboard.events').send(event, data),

    hook: ({ name, argument }) => strapi.hook(name).call(argument),

    config: ({ key }) => strapi.config.get(key),

    /** Runs one of the site's scheduled tasks now, and resolves when it is done. */
    async cron({ name }) {
      const tasks = strapi.cron.jobs.filter((one) => one.name === name);
      if (tasks.length === 0) {
        const known = strapi.cron.jobs.map((one) => one.name).join(', ');
        throw new Error(`Unknown task "${name}". There are: ${known}`);
      }
      for (const { job } of tasks) await job.invoke();
    },

    async sql({ statement, bindings = [] }) {
      const executor = strapi.db.inTransaction()
        ? (await strapi.db.transaction()).get()
        : strapi.db.connection;
      const answer = await executor.raw(statement, bindings);
      if (CHANGES_WEBHOOKS.test(statement)) await setTimeout(REMEMBERED_MS);
      return rowsOf(answer);
    },

    /** `{ steps: [{ op, args }], throw? }`; a step may be a transaction itself. */
    async transaction({ steps, throw: message, swallow = false }) {
      const results = [];
      const work = () =>
        strapi.db.transaction(async () => {
          for (const step of steps) results.push(plain(await run(step.op, step.args ?? {})));
          if (message !== undefined) throw new Error(message);
        });
      await (swallow ? work().catch(() => {}) : work());
      return results;
    },

    /** A module of the tests: `module.exports = ({ strapi, state, args }) => result`. */
    run: ({ file, args }) => require(file)({ strapi, state, args }),

    /** A function's source text, `({ strapi, state, require }, ...args) => result`. */
    evaluate({ source, args = [] }) {
      const work = new Function(`return (${source});`)();
      return work({ strapi, state, require }, ...args);
    },

    state: ({ key }) => (key === undefined ? state : state[key]),

    memory() {
      global.gc?.();
      return process.memoryUsage();
    },
  };

  const run = async (op, args) => {
    if (!Object.hasOwn(operations, op)) {
      throw new Error(
        `Unknown operation "${op}". There are: ${Object.keys(operations).join(', ')}`
      );
    }
    return operations[op](args);
  };

  return async (op, args) => plain(await run(op, args));
};

module.exports = { createControl };
