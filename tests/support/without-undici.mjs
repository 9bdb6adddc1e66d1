import { register } from 'node:module';

// `node --import` of this file: as if the site had not installed the package of the client `undici`.
const hooks = `export const resolve = (specifier, context, next) => {
  if (specifier !== 'undici') return next(specifier, context);
  const error = new Error('Cannot find package ' + specifier);
  throw Object.assign(error, { code: 'ERR_MODULE_NOT_FOUND' });
};`;

register(`data:text/javascript,${encodeURIComponent(hooks)}`);
