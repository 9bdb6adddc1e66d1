'use strict';

module.exports = {
  'content-api': {
    type: 'content-api',
    routes: [
      { method: 'POST', path: '/wave', handler: 'demo.wave' },
      { method: 'GET', path: '/attempts', handler: 'demo.attempts' },
    ],
  },
};
