// For `moduleResolution: Node`, which does not read `exports` in package.json.
export * from './dist/types/server/src';
export { default } from './dist/types/server/src';
