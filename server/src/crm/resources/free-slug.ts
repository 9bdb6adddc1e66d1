import type { Core } from '@strapi/strapi';
import { errors } from '@strapi/utils';
import { fieldError } from '../../http/validation';
import { getSource } from '../mapping/registry';

interface UidService {
  generateUIDField(options: {
    contentTypeUID: string;
    field: string;
    data: Record<string, unknown>;
  }): Promise<string>;
}

const SLUG_MAX = 255;

/** A free slug for a tag of that name: the host makes slugs only in the admin panel. */
export const freeSlug = async (strapi: Core.Strapi, name: string): Promise<string | undefined> => {
  const { uid, own } = getSource(strapi, 'tag');
  if (!own) return undefined;
  const service = strapi.plugin('content-manager')?.service('uid') as UidService | undefined;
  if (!service) throw new errors.ValidationError('slug: is required');
  const slug = await service.generateUIDField({
    contentTypeUID: uid,
    field: 'slug',
    data: { name },
  });
  // One letter of a name may be several of a slug: "ß" is "ss".
  if (slug.length > SLUG_MAX) {
    throw fieldError('name', `makes a slug of more than ${SLUG_MAX} characters`);
  }
  return slug;
};
