import { randomBytes } from 'node:crypto';
import { errors } from '@strapi/utils';
import { fieldError } from '../../http/validation';
import { getSource } from '../mapping/registry';
import type { Payload } from '../rules/types';
import { isSlugTaken } from '../tag-slugs';
import { crmRecords } from './crm-records';
import type { App } from '../../app';

interface UidService {
  generateUIDField(options: {
    contentTypeUID: string;
    field: string;
    data: Record<string, unknown>;
  }): Promise<string>;
}

const SLUG_MAX = 255;

/** A free slug for a tag of that name: the host makes slugs only in the admin panel. */
const freeSlug = async (app: App, name: string): Promise<string | undefined> => {
  const { uid, own } = getSource(app, 'tag');
  if (!own) return undefined;
  const service = app.strapi.plugin('content-manager')?.service('uid') as UidService | undefined;
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

const TRIES = 10;

/**
 * Makes a tag, with a free slug where none is given. Where another tag takes that slug meanwhile, it
 * is made with another one, or `known` finds the other tag.
 * @param known finds the tag that somebody else may have made of the same name
 * @throws ValidationError (400) where the given slug is taken
 */
export const createTag = async (
  app: App,
  input: Readonly<Record<string, unknown>>,
  known?: () => Promise<string | null>
): Promise<Payload | { id: string }> => {
  for (let attempt = 1; ; attempt += 1) {
    const free = input.slug === undefined ? await freeSlug(app, String(input.name)) : undefined;
    // A transaction that goes on reading what was there when it began finds the same slug free.
    const made = free && attempt > 2 ? `${free}-${randomBytes(3).toString('hex')}` : free;
    const data = made === undefined ? input : { ...input, slug: made };
    try {
      const create = () => crmRecords(app, 'tag').create(data);
      return await (app.db.inTransaction() ? app.db.savepoint(create) : create());
    } catch (error) {
      if (!isSlugTaken(error) || free === undefined || attempt >= TRIES) throw error;
      const id = (await known?.()) ?? null;
      if (id !== null) return { id };
    }
  }
};
