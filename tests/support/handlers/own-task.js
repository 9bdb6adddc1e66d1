'use strict';

// A scheduled task of the site's own, as `cron.tasks` in config/server names them.
module.exports = {
  register({ strapi }) {
    strapi.config.set('server.cron.tasks', {
      ownTask: {
        task: () => strapi.log.warn('own task ran'),
        options: { rule: '* * * * * *' },
      },
    });
  },
};
