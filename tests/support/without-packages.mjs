import Module from 'node:module';
import path from 'node:path';

// `node --import` of this file: as if the site had not installed the packages that the environment
// variable WITHOUT_PACKAGES names, with commas between them. What others need of them is there.
const hidden = String(process.env.WITHOUT_PACKAGES).split(',');
const resolve = Module._resolveFilename;

Module._resolveFilename = function resolveInstalled(request, parent, ...how) {
  const isOfSite = parent?.filename === path.resolve('package.json');
  if (isOfSite && hidden.some((name) => request === name || request.startsWith(`${name}/`))) {
    throw Object.assign(new Error(`Cannot find module '${request}'`), { code: 'MODULE_NOT_FOUND' });
  }
  return resolve.call(this, request, parent, ...how);
};
