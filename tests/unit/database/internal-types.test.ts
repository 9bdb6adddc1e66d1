import type { Core } from '@strapi/strapi';
import { Site } from '../../../server/src/database/site';
import { prepareInternalTypes } from '../../../server/src/database/tables/internal-types';

const fakeHost = (hasGraphql: boolean) => {
  const disabled: string[] = [];
  const paths: string[] = [];
  const extension = {
    shadowCRUD: (uid: string) => ({ disable: () => void disabled.push(uid) }),
  };
  const strapi = {
    get: () => ({
      extend: (_uid: string, change: (type: object) => void) => change({ attributes: {} }),
    }),
    plugin: (name: string) =>
      name === 'graphql' && hasGraphql ? { service: () => extension } : undefined,
    server: { router: { use: (path: string) => void paths.push(path) } },
  } as unknown as Core.Strapi;
  return { strapi, disabled, paths };
};

it('types that only the plugin writes have no GraphQL type, where a site has GraphQL', () => {
  const { strapi, disabled } = fakeHost(true);
  prepareInternalTypes({ strapi, site: new Site(strapi) }, [
    'webhook',
    'delivery',
    'pos-connection',
  ]);
  expect(disabled).toEqual([
    'plugin::switchboard.webhook',
    'plugin::switchboard.delivery',
    'plugin::switchboard.pos-connection',
  ]);
});

it('a site without GraphQL is asked for nothing', () => {
  const { strapi, disabled, paths } = fakeHost(false);
  prepareInternalTypes({ strapi, site: new Site(strapi) }, ['webhook']);
  expect(disabled).toEqual([]);
  expect(paths).toContain('/content-manager/collection-types/:model');
});
