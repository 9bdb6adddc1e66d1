import { z } from '@strapi/utils';
import { MAPPING_KINDS } from '../../../../shared/contracts/pos-mapping';
import { pageQuery } from '../../http/pagination';
import { LARGEST_ID } from '../../http/validation';
import { createItemInput, identifier, itemName, locationName } from '../../stock/inputs';

/** zod schemas of the routes of the mapping inbox. */

export const inboxQuery = z.object({
  ...pageQuery,
  kind: z.enum(MAPPING_KINDS).optional(),
  search: z.string().max(256).optional(),
});

export const mappingsQuery = z.object({ ...pageQuery });

const id = z.number().int().min(1).max(LARGEST_ID);

const create = createItemInput.omit({ opening: true }).partial();

const target = z
  .strictObject({
    item: itemName.optional(),
    create: z.union([z.literal(true), create]).optional(),
    location: locationName.optional(),
    ignore: z.literal(true).optional(),
  })
  .refine((to) => Object.values(to).filter((value) => value !== undefined).length === 1, {
    message: 'must have one of item, create, location and ignore',
  });

export const resolveInput = z
  .strictObject({
    kind: z.enum(MAPPING_KINDS),
    value: identifier,
    connection: id.optional(),
    to: target,
    preview: z.boolean().default(false),
  })
  .superRefine(({ kind, connection, to }, context) => {
    const wrong = (path: string[], message: string) =>
      context.addIssue({ code: 'custom', path, message });
    if (kind === 'location_ref') {
      if (connection === undefined) wrong(['connection'], 'is required for a location_ref');
      if (to.location === undefined)
        wrong(['to', 'location'], 'is what a location_ref is mapped to');
      return;
    }
    if (connection !== undefined) wrong(['connection'], `means nothing for a ${kind}`);
    if (to.location !== undefined) wrong(['to', 'location'], `is nothing a ${kind} is mapped to`);
  });

export const undoInput = z.strictObject({ id });

export type InboxQuery = z.infer<typeof inboxQuery>;
export type Resolve = z.infer<typeof resolveInput>;
export type Target = Resolve['to'];
