import { register } from 'node:module';

// `node --import` of this file: as if the site had not installed the packages of the engine `bullmq`.
const hooks = `export const resolve = (specifier, context, next) => {
  if (!['bullmq', 'ioredis'].includes(specifier)) return next(specifier, context);
  const error = new Error('Cannot find package ' + specifier);
  throw Object.assign(error, { code: 'ERR_MODULE_NOT_FOUND' });
};`;

register(`data:text/javascript,${encodeURIComponent(hooks)}`);
