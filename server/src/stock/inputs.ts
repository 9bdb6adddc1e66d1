import { z } from '@strapi/utils';
import { pageQuery } from '../http/pagination';
import { parseOccurredAt } from './rules/occurred-at';
import { labelText } from '../http/validation';

/** zod schemas of the stock's admin routes. */

/** No control characters: what a till can send is what an owner can name. */

const PLAIN = /^[^\u0000-\u001f\u007f-\u009f]*$/;

const LONE_SURROGATE = /\p{Surrogate}/u;

export const identifier = z
  .string()
  .min(1)
  .max(256)
  .refine((text) => [...text].length <= 128, { message: 'must have at most 128 characters' })
  .refine((text) => PLAIN.test(text), { message: 'must not contain control characters' })
  .refine((text) => !LONE_SURROGATE.test(text), { message: 'must be valid Unicode' });

const name = labelText();

const LARGEST = 1_000_000_000;
const quantity = z.number().int().min(-LARGEST).max(LARGEST);

/** A location's id, or its code. */
export const locationName = z.union([z.number().int().min(1).max(2_147_483_647), identifier]);

export const createLocationInput = z.object({ name, code: identifier });
export const updateLocationInput = z.object({
  name: name.optional(),
  code: identifier.optional(),
});

export const createItemInput = z.object({
  sku: identifier,
  gtin: identifier.nullish(),
  name: name.nullish(),
  low_at: quantity.default(0),
  opening: z
    .array(z.object({ location: locationName.optional(), quantity }))
    .max(1000)
    .default([]),
});

export const updateItemInput = z.object({
  sku: identifier.optional(),
  gtin: identifier.nullable().optional(),
  name: name.nullable().optional(),
  low_at: quantity.optional(),
});

export const adjustInput = z.object({
  location: locationName.optional(),
  quantity: quantity.refine((value) => value !== 0, { message: 'must not be 0' }),
  reason: z
    .string()
    .max(1000)
    .refine((text) => !LONE_SURROGATE.test(text) && !text.includes('\u0000'), {
      message: 'must be valid text',
    })
    .optional(),
  occurred_at: z
    .string()
    .transform((text, context) => {
      const time = parseOccurredAt(text);
      if (time.ok) return time.epochMs;
      context.addIssue({ code: 'custom', message: time.rule });
      return z.NEVER;
    })
    .optional(),
});

export const listQuery = z.object({ ...pageQuery, search: z.string().max(256).optional() });

export const levelsQuery = z.object({
  ...pageQuery,
  sku: z.string().max(256).optional(),
  item: z
    .string()
    .regex(/^[1-9]\d{0,9}$/)
    .transform(Number)
    .optional(),
  location: z.string().min(1).max(256).optional(),
  search: z.string().max(256).optional(),
});

export const movementsQuery = z.object({ ...pageQuery });

export const rebuildInput = z.object({ mend: z.boolean().default(false) });

export type CreateItem = z.infer<typeof createItemInput>;
export type UpdateItem = z.infer<typeof updateItemInput>;
export type CreateLocation = z.infer<typeof createLocationInput>;
export type UpdateLocation = z.infer<typeof updateLocationInput>;
export type Adjust = z.infer<typeof adjustInput>;
export type LevelsQuery = z.infer<typeof levelsQuery>;
export type ListQuery = z.infer<typeof listQuery>;
