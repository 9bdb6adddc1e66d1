'use strict';

/** A route's errors name fields; users of the command know them as options. */
const asOptions = (command, error) => {
  const issues = error?.details?.errors;
  if (error?.name !== 'ValidationError' || !Array.isArray(issues) || issues.length === 0)
    return error;
  const lines = issues.map(({ path, message }) => {
    const field = path.find((part) => part !== 'filter');
    return `--${field === 'ids' ? 'id' : String(field).replaceAll('_', '-')} ${message}`;
  });
  return new Error(`${command}: ${lines.join('; ')}`);
};

const requirePlugin = (strapi) => {
  if (!strapi.plugins.switchboard)
    throw new Error('The plugin switchboard is not on in config/plugins of this site.');
};

/** Refuses where the routes are not there either: while the module is off. */
const requireWebhooks = async (strapi, command) => {
  requirePlugin(strapi);
  const modules = strapi.service('plugin::switchboard.modules');
  if (!(await modules.isEnabled('webhooks')))
    throw new Error(`${command}: the module Webhooks is switched off.`);
};

/** Users of a command have the database: answers hide nothing from them. */
const SEES_ALL = { route: { info: { type: 'admin' } }, userAbility: { can: () => true } };

/**
 * Calls an action of the management routes within this process: what it checks and answers is what the
 * route does.
 * @param command what the message about a wrong option begins with
 */
const createManagement = (strapi, command) => {
  requirePlugin(strapi);
  return async (controller, action, { query = {}, params = {}, body } = {}) => {
    const refuse = (message) => {
      throw new Error(`${command}: ${message}`);
    };
    const ctx = {
      query,
      params,
      request: { body },
      state: SEES_ALL,
      conflict: refuse,
      serviceUnavailable: refuse,
    };
    await requireWebhooks(strapi, command);
    try {
      await strapi.controller(`plugin::switchboard.${controller}`)[action](ctx);
    } catch (error) {
      throw asOptions(command, error);
    }
    return ctx.body;
  };
};

module.exports = { createManagement, requireWebhooks };
