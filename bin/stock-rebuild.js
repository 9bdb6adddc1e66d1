#!/usr/bin/env node
'use strict';

// The name that `switchboard stock rebuild` had first.
require('./lib/command')
  .run(['stock', 'rebuild', ...process.argv.slice(2)])
  .then((code) => process.exit(code));
