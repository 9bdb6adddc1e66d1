// For `moduleResolution: Node`, which does not read `exports` in package.json.
export { default } from './dist/types/admin/src';
