#!/usr/bin/env node
'use strict';

// Strapi lets no plugin add a command of its own, so this is one: run it in the site's folder.
require('./lib/command')
  .run(process.argv.slice(2))
  .then((code) => process.exit(code));
