import type { Core } from '@strapi/strapi';
import { errors } from '@strapi/utils';
import { getSource } from '../sources/registry';

interface UidService {
  generateUIDField(options: {
    contentTypeUID: string;
    field: string;
    data: Record<string, unknown>;
  }): Promise<string>;
}

/** A free slug for a tag of that name: the host makes slugs only in the admin panel. */
export const freeSlug = async (strapi: Core.Strapi, name: string): Promise<string | undefined> => {
  const { uid, own } = getSource(strapi, 'tag');
  if (!own) return undefined;
  const service = strapi.plugin('content-manager')?.service('uid') as UidService | undefined;
  if (!service) throw new errors.ValidationError('slug: is required');
  return service.generateUIDField({ contentTypeUID: uid, field: 'slug', data: { name } });
};
